package constraint

import (
	"errors"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

const (
	// maxRule is the maximum size of an expression, in bytes, and maxNesting the maximum depth of its parentheses and
	// the like.
	maxRule    = 16 << 10
	maxNesting = 64
	// maxCost bounds the evaluation for one operator, in units of CEL: about one for each step, more for expensive
	// ones. A rule that reads each property takes some ten for each.
	maxCost = 10_000
	// maxValue and maxValueNodes bound each value within an evaluation, in bytes and in parts. Otherwise a few steps
	// could build a value that takes years to compare. They bound the properties of an operator too.
	maxValue      = 256 << 10
	maxValueNodes = 20_000
	maxValueDepth = 64
	// maxPattern bounds the compiled form of a regular expression.
	maxPattern = 1000
	// ruleBytes and ruleTextBytes are the memory of a compiled rule, in bytes: a constant part and a part for each
	// byte of its text.
	ruleBytes     = 6 << 10
	ruleTextBytes = 100
)

// Rule is a compiled expression.
type Rule struct {
	// Text is the original text.
	Text string

	program cel.Program
}

// environment returns the environment of expressions.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	properties := cel.ListType(cel.MapType(cel.StringType, cel.DynType))
	return cel.NewEnv(
		cel.Variable("properties", properties),
		cel.Function("semver_compare", cel.Overload("semver_compare_string_string",
			[]*cel.Type{cel.StringType, cel.StringType}, cel.IntType, cel.BinaryBinding(semverCompare))),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(maxRule),
		cel.RegexProgramSizeLimit(maxPattern),
		cel.CostSizingStrategy(cost.AggregateSizingStrategy(sizes()...)),
	)
})

// sizes returns options that measure values by their bytes, at any depth.
func sizes() []types.SizeCalculatorOption {
	return []types.SizeCalculatorOption{
		types.SizeCalculatorStringUnitLength(1),
		types.SizeCalculatorMaxDepth(maxValueDepth),
		types.SizeCalculatorMaxTraversal(maxValueNodes),
	}
}

// semverCompare implements semver_compare: the result is negative, zero or positive.
func semverCompare(a, b ref.Val) ref.Val {
	var versions [2]semver.Version
	for i, value := range []ref.Val{a, b} {
		text, ok := value.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(value)
		}
		version, err := semver.ParseTolerant(string(text))
		if err != nil {
			return types.NewErr("semver_compare: %v", err)
		}
		versions[i] = version
	}
	return types.Int(versions[0].Compare(versions[1]))
}

var (
	errRuleType = errors.New("the rule must be true or false")
	errRuleCost = errors.New("the rule takes too many steps")
)

// compile checks the text of an expression and prepares it for evaluation.
func compile(text string) (*Rule, error) {
	if len(text) > maxRule {
		return nil, fmt.Errorf("%w: its rule has %d bytes, the limit is %d", errTooLarge, len(text), maxRule)
	}
	program, err := compileNew(text)
	if err != nil {
		return nil, fmt.Errorf("compiling rule %s: %w", bundles.Quote(text), clipped(err))
	}
	return &Rule{Text: text, program: program}, nil
}

func compileNew(text string) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err //nolint:wrapcheck // compile says what was being done
	}
	ast, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("%w, not %s", errRuleType, ast.OutputType())
	}
	estimate, err := env.EstimateCost(ast, unknownSizes{})
	if err == nil && estimate.Min > maxCost {
		return nil, fmt.Errorf("%w: %d at least, the limit is %d", errRuleCost, estimate.Min, maxCost)
	}
	return env.Program(ast,
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(maxCost),
		cel.MemoryTracking(types.MemoryTrackerSizeCalculator(types.NewSizeCalculator(sizes()...))),
		cel.MemoryLimit(maxValue),
	) //nolint:wrapcheck // as above
}

// unknownSizes bases the estimate on the text alone.
type unknownSizes struct{}

// EstimateSize returns no estimate.
func (unknownSizes) EstimateSize(cost.AstNode) *cost.SizeEstimate { return nil }

// EstimateCallCost returns no estimate.
func (unknownSizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate { //nolint:gocritic // the interface has it so
	return nil
}

// rule returns the verdict on a rule. A rule that cannot be evaluated is not met.
func (e *evaluation) rule(r *Rule) Verdict {
	if e.properties == nil {
		properties, ok := e.cache.properties(e.subject.Properties, e.share)
		if !ok {
			return Unmet
		}
		e.properties = properties
	}
	if !e.spend(0) {
		return CutOff
	}
	result, details, err := r.program.Eval(map[string]any{"properties": e.properties})
	spent := uint64(maxCost)
	if counted := details.ActualCost(); counted != nil {
		spent = min(*counted, 2*maxCost)
	}
	e.spend((evaluationCost + int64(spent)) * costSteps)
	if _, cancelled := errors.AsType[interpreter.EvalCancelledError](err); cancelled {
		return CutOff
	}
	if err == nil && result == types.True {
		return Met
	}
	return Unmet
}

// evaluationCost is the cost of starting an evaluation.
const evaluationCost = 5
