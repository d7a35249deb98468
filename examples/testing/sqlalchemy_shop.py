"""A shop on SQLAlchemy whose orders add jobs."""

from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from gw_core import Client, JobContext, RetryAfter, TaskRegistry

tasks = TaskRegistry()
make_session = sessionmaker()


class Base(DeclarativeBase):
    """The base of the models."""


class Parcel(Base):
    """A parcel on its way."""

    __tablename__ = "parcels"
    id: Mapped[int] = mapped_column(primary_key=True)
    address: Mapped[str]
    status: Mapped[str] = mapped_column(default="packed")
    label: Mapped[str | None] = mapped_column(unique=True)


def send_parcel(session: Session, client: Client, address: str) -> Parcel:
    """Store a parcel, add the jobs that ship and track it, and commit."""
    parcel = Parcel(address=address)
    session.add(parcel)
    session.flush()
    client.add("ship", {"parcel": parcel.id}, queue_name="ship", conn=session)
    client.add("track", {"parcel": parcel.id}, run_at=timedelta(hours=6), conn=session)
    session.commit()
    return parcel


@tasks.task("ship")
def ship(payload: dict, context: JobContext) -> None:
    """Ship a parcel, and add the job that prints its label."""
    with make_session() as session:
        parcel = session.get_one(Parcel, payload["parcel"])
        if not parcel.address:
            raise RetryAfter(timedelta(hours=1), "the address is missing")
        parcel.status = "shipped"
        context.add("label", {"parcel": parcel.id, "label": f"L-{parcel.id}"}, conn=session)
        session.commit()


@tasks.task("label")
def label(payload: dict) -> None:
    """Print the label of a parcel; labels are unique."""
    with make_session() as session:
        session.execute(update(Parcel).where(Parcel.id == payload["parcel"]).values(label=payload["label"]))
        session.commit()


@tasks.task("track")
def track(payload: dict) -> None:
    """Note that a parcel has arrived."""
    with make_session() as session:
        session.execute(update(Parcel).where(Parcel.id == payload["parcel"]).values(status="arrived"))
        session.commit()
