"""What an agent is told with a message: whose it is, what is expected, and that it is data. The seed's section 14."""

from __future__ import annotations

from holdfast.bridge.model import Message, Priority, Task

BEGINNING = 80


def beginning(text: str) -> str:
    """The first words of a text, on one line."""
    line = " ".join(text.split(maxsplit=BEGINNING // 2))  # so many words, of one letter each, fill it
    return line if len(line) <= BEGINNING else f"{line[: BEGINNING - 1]}…"


ANSWER_IS_REPLY = "Your answer to this is the reply and ends the message; finish_message is not needed."


def delivered(message: Message, *, waiting: int = 0, managed: bool = False) -> str:
    """A message as the agent gets it."""
    priority = Priority(message.priority)
    lines = [f"[Message {message.id} for {message.target}, from {message.sender}, delivered by Holdfast]"]
    if message.attempts > 1:
        lines.append(
            f"[It was handed out before ({message.attempts} times now) and not finished: look what is done already.]"
        )
    lines += ["", message.text, ""]
    if priority is Priority.STOP:
        lines.append(f"[STOP: halt what you are doing at once, and say so. Then finish_message {message.id}.]")
        return "\n".join(lines)
    words = beginning(message.text)
    first = f'Announce it: "[New message received: {words}]".'
    if priority is Priority.URGENT:
        order = "It is URGENT: put the present task aside for it."
    else:
        order = "If you are in the middle of a task, finish that first."
    end = ANSWER_IS_REPLY if managed else f"When it is done: finish_message {message.id}."
    say = f'Answer with "[Responding to: {words}]". {end}'
    lines.append(f"[{first} {order} {say}]")
    if waiting:
        lines.append(f"[{waiting} more wait; they come in order.]")
    return "\n".join(lines)


def resumption(task: Task, old: str | None, decided: str | None) -> str:
    """What a new incarnation is told of the task that the old one left."""
    step = f" The last completed step was {task.last_completed_step}." if task.last_completed_step else ""
    pending = f" Pending: {', '.join(task.pending_messages)}." if task.pending_messages else ""
    was = f" {old}" if old else ""
    text = f"Session restarted. The previous session{was} was working on: {task.current_task}.{step}{pending}"
    if decided == "resume":
        return f"{text} The owner decided: resume it."
    if decided == "fresh":
        return f"{text} The owner decided: start fresh."
    return f'{text} Announce that, and ask: "Resume or start fresh?"'
