// The search of a site that is opened as files (ci/docs_search.py puts this before search/main.js).
// A browser then starts no worker and reads no JSON: the same scripts run in the page of results.
if (location.protocol === "file:") {
  window.Worker = class {
    postMessage(message) {
      if (message.query) {
        this.onmessage({data: {results: search(message.query)}});
      } else if (document.getElementById("mkdocs-search-query")) {
        window.postMessage = (data) => this.onmessage({data});
        this.load(["lunr.js", "worker.js", "search_index.js"]);
      }
    }

    load([name, ...others]) {
      const script = document.createElement("script");
      script.src = joinUrl(base_url, "search/" + name);
      script.onload = others.length ? () => this.load(others) : onScriptsLoaded;
      document.head.append(script);
    }
  };
}
