#!/usr/bin/env python3
"""For --notify: sends the changes of a verdict by mail.

fabricheck verdict 17 --notify "ci/notify/mail.py ops@example.org localhost:25"
"""

import json
import smtplib
import sys
from email.message import EmailMessage

address, server = sys.argv[1:]
host, _, port = server.partition(":")
verdict = json.load(sys.stdin)
lines = []
for change in verdict["changes"]:
    lines += [
        f"{change['node']}: {change['was'] or 'new'} to {change['status']} ({change['rule']})",
        f"  {change['sentence']}",
        f"  Next: {change['next_step']}",
    ]
message = EmailMessage()
nodes = ", ".join(change["node"] for change in verdict["changes"])
message["Subject"] = f"fabricheck {verdict['of']}: {nodes}"[:200]
message["From"] = message["To"] = address
message.set_content("\n".join(lines) + "\n")
with smtplib.SMTP(host, int(port or 25), timeout=30) as smtp:
    smtp.send_message(message)
