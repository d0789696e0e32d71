from .mesh import Axis as Axis
from .mesh import Dim as Dim
from .mesh import Mesh as Mesh
from .mesh import Sharding as Sharding
from .propagation import Conflict as Conflict
from .propagation import Explanation as Explanation
from .propagation import Propagation as Propagation
from .propagation import Remedy as Remedy
from .propagation import Reshard as Reshard
from .propagation import Step as Step
from .propagation import Suspicion as Suspicion
from .propagation import Trace as Trace
from .propagation import annotate as annotate
from .propagation import imported as imported
from .propagation import meshes as meshes
from .propagation import propagate as propagate
from .propagation import shardings as shardings
from .hardware import Hardware as Hardware
from .hardware import Level as Level
from .hardware import hardware as hardware
from .simulation import Blame as Blame
from .simulation import Simulation as Simulation
from .simulation import simulate as simulate

hardware_table: dict[str, Hardware]
