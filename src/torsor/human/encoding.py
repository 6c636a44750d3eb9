"""Registration of the classes and functions of ``torsor.human`` that files may contain."""

from torsor.human.body import loads, person, strength, trunk_strength, work_shift
from torsor.human.contact import contact_forces, schedule, support
from torsor.human.gait import walking
from torsor.human.tasks import task
from torsor.human.terms import forces, habits, objectives, places, population, problem
from torsor.motion.encoding import encodable

encodable("human", loads, person, strength, trunk_strength, work_shift)
encodable("human", contact_forces, schedule, support)
encodable("human", walking, task)
encodable("human", forces, habits, objectives, places, population, problem)
