"""An operation as its bindings see it: the library's tables, and what they cannot know of Rust."""
from generator.names import ELEMENTS, INDICES, RUST, SCALARS
from generator.words import NOUNS
from operations_tables import Field, Operand, Operation, Scalar


class Model:
    def __init__(self, op: Operation, forward: "Operation | None") -> None:
        self.op, self.rust = op, RUST[op.name]
        self.forward = forward  # of gradients: the operation that they belong to
        self.type, self.generics, self.bounds = self.rust.type, self.rust.generics, self.rust.bounds
        self.args, self.pointers, self.plan = f"{self.type}Args", f"{self.type}Pointers", f"{self.type}Plan"
        self.scales = {field.name: field.operand or "" for field in op.fields_of("SCALE")}  # operands of factors, and what they scale
        self.absent = {field.operand for field in op.fields_of("PART", "GROUPS")} | set(self.scales) | INDICES  # unless the problem has them
        self.factors = [operand for operand in op.operands if not operand.is_output and operand.name in {field.operand for field in op.fields_of("DTYPE")}]
        self.has_depth = "scale" in {scalar.name for scalar in op.scalars}
        self.is_static = any(operand.may_be_static for operand in op.operands)
        self.required = [operand for operand in op.operands if operand.name not in self.absent]
        self.optional = [operand for operand in op.operands if operand.name in self.absent]
        self.inputs = [operand for operand in self.required if not operand.is_output]
        self.target = next(operand for operand in self.required if operand.is_output)
        self.constant = op.problem_type.upper()
        self.scalars = op.scalars
        self.by_forward = ({field.name for field in forward.fields} if forward else set()) - {"assume_finite"}

    def is_addend(self, operand: Operand) -> bool:
        """Whether it may be the array that is written."""
        return operand.name in self.target.may_be

    def element(self, operand: Operand) -> str:
        if operand.name in self.scales:
            return "f32"
        parameters = self.rust.parameters
        return ELEMENTS.get(operand.name, parameters[0] if operand in self.factors else parameters[-1])

    @staticmethod
    def real(scalar: Scalar) -> str:
        return "Option<f64>" if SCALARS[scalar.name] == "None" else "f64"

    def value(self, scalar: Scalar, depth: str) -> str:
        """For the library."""
        return f"scale_of(self.{scalar.name}, {depth})" if self.real(scalar) == "Option<f64>" else f"self.{scalar.name}"

    def noun(self, operand: "str | None") -> str:
        return NOUNS.get(operand, self.op.operand(operand).title) if operand else ""

    def words(self, table: "dict[str, str]", name: str, otherwise: str) -> str:
        text = table.get(f"{self.op.name}.{name}", table.get(name, otherwise))
        factors = " and ".join("A" if operand.is_values else operand.title for operand in self.factors)
        return text.format(args=self.args, type=self.type, factors=factors) if "{" in text else text

    def taken_over(self) -> "list[Field]":
        """Fields that come from the forward problem."""
        return [field for field in self.op.fields if field.name in self.by_forward]
