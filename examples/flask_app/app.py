"""Flask and SQLAlchemy: a request writes an order and adds its job in one transaction.

Run it with: flask run, and beside it: gw run --tasks tasks
"""

import os

from flask import Flask, abort
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy.engine import make_url
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from gw_core import Client


class Base(DeclarativeBase):
    pass


db = SQLAlchemy(model_class=Base)
queue = Client(os.environ["DATABASE_URL"])


class Order(db.Model):
    __tablename__ = "orders"

    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    receipt: Mapped[str | None]


app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg")
db.init_app(app)
with app.app_context():
    queue.migrate()
    db.create_all()


@app.post("/orders/<item>")
def create_order(item: str):
    order = Order(item=item)
    db.session.add(order)
    db.session.flush()
    queue.add("send_receipt", {"order": order.id}, conn=db.session)
    if item == "sold-out":
        abort(409)  # Flask-SQLAlchemy rolls the transaction back, and the job with it
    db.session.commit()
    return {"id": order.id}, 201
