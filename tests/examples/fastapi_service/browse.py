"""The requests of a browser, and what the service answers; the log is on stderr."""

import logging

import service
from fastapi.testclient import TestClient

from gw_core import JobLogFilter

handler = logging.StreamHandler()
handler.addFilter(JobLogFilter())
handler.setFormatter(logging.Formatter("%(message)s by %(task)s", defaults={"task": None}))
logging.getLogger("shop").addHandler(handler)
logging.getLogger("shop").setLevel(logging.INFO)
LINES = [{"skuCode": "a", "unitPrice": "1.50"}, {"skuCode": "b", "unitPrice": "2.25"}]

with TestClient(service.app) as browser:
    orders = {item: browser.post(f"/orders/{item}", json=LINES).json() for item in ("book", "slow", "stolen")}
    for item, order in orders.items():
        answer = browser.get(f"/receipts/{order['job']}")
        print(item, answer.status_code, answer.text.split(" (")[0])
    [failed] = browser.get("/failed").json()
    print(failed["id"] == orders["stolen"]["job"], failed["attempts"], failed["last_error"].split(" (")[0])
    print(browser.get(f"/jobs/{orders['slow']['job']}/attempts").json())
    print(browser.post("/albums").json())
    reminder = browser.post("/reminders").json()
    print(browser.get("/scheduled").json(), browser.delete(f"/reminders/{reminder}").json())
    print(browser.get(f"/receipts/{reminder}").json(), browser.get("/receipts/999999").json())
    print(browser.post(f"/jobs/{orders['stolen']['job']}/retry").json() == [orders["stolen"]["job"]])
print(service.recorder.seen[0], service.recorder.seen[-1], sorted(set(service.recorder.seen[1:-1])))
