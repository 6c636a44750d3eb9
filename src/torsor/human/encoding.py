"""Registration of the classes and functions of ``torsor.human`` that files of motion problems may name."""

from torsor.human.body import loads, person, strength, trunk_strength
from torsor.human.body import loads as hand_forces
from torsor.human.contact import contact_forces as hand_node
from torsor.human.contact import free_walk, run, schedule, stairs, support
from torsor.human.contact import support as rails
from torsor.human.gait import printed_constraints as printed
from torsor.human.gait import printed_constraints as printed_set
from torsor.human.gait import walking as climbing
from torsor.human.tasks import task
from torsor.human.tasks.sitting_down import SittingDown
from torsor.human.terms import feet, forces, habits, places, problem, tendons
from torsor.human.terms import feet as flight
from torsor.human.terms import feet as sharing
from torsor.human.terms import feet as stair_terms
from torsor.human.terms import forces as hands
from torsor.human.terms import forces as legs
from torsor.human.terms import forces as muscles
from torsor.human.terms import forces as trunk
from torsor.human.terms import objectives as energy
from torsor.human.terms import objectives as heat
from torsor.human.terms import objectives as relative_strength
from torsor.human.terms import objectives as stability
from torsor.human.terms import places as rail_terms
from torsor.motion.encoding import encodable

encodable("human", hand_forces, loads, person, strength, trunk_strength)
encodable("human", free_walk, hand_node, rails, run, schedule, stairs, support)
encodable("human", climbing, printed_set, SittingDown, task, rail_terms, stair_terms)
encodable("human", energy, feet, flight, forces, habits, hands, heat, legs, muscles, places, printed, problem)
encodable("human", relative_strength, sharing, stability, tendons, trunk)
