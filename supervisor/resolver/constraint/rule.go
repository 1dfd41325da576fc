package constraint

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/blang/semver/v4"

	"github.com/chandlery/chandlery/bundles"
)

const (
	// maxRule bounds the text of an expression and maxNesting its parentheses
	// and the like.
	maxRule    = 16 << 10
	maxNesting = 64
	// maxCost bounds what the evaluation for one operator may take, in units of
	// CEL: about one for each step, more for what takes longer. A rule that looks
	// at each property takes some ten for each.
	maxCost = 10_000
	// maxMetered bounds what all evaluations of a Meter may take: a second or so.
	// A rule that looks at each property of the versions in the largest catalog
	// takes a quarter of it.
	maxMetered = 3_000_000
	// maxValue and maxValueNodes bound each value within an evaluation, in bytes
	// and in parts. Without that a few steps could build a value that takes years
	// to compare. They bound the properties of an operator too.
	maxValue      = 256 << 10
	maxValueNodes = 20_000
	maxValueDepth = 64
	// maxPattern bounds the compiled form of a regular expression.
	maxPattern = 1000
	// maxRules is how many compiled rules are remembered in the process.
	maxRules = 256
)

// Rule is a compiled expression.
type Rule struct {
	// Text is as it was written.
	Text string

	program cel.Program
}

// environment is what expressions may use.
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

// sizes is how values are measured: by their bytes, however deep they lie.
func sizes() []types.SizeCalculatorOption {
	return []types.SizeCalculatorOption{
		types.SizeCalculatorStringUnitLength(1),
		types.SizeCalculatorMaxDepth(maxValueDepth),
		types.SizeCalculatorMaxTraversal(maxValueNodes),
	}
}

// semverCompare is the function of the name: negative, zero or positive.
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

// rules remembers what has been compiled: operators of a family repeat their
// rules in each version.
var rules = struct {
	sync.Mutex

	byText map[string]*Rule
}{byText: map[string]*Rule{}}

// compile checks the text of an expression and makes it ready to be evaluated.
func compile(text string) (*Rule, error) {
	if len(text) > maxRule {
		return nil, fmt.Errorf("%w: its rule has %d bytes, the limit is %d", errTooLarge, len(text), maxRule)
	}
	rules.Lock()
	defer rules.Unlock()
	if rule, ok := rules.byText[text]; ok {
		return rule, nil
	}
	program, err := compileNew(text)
	if err != nil {
		return nil, fmt.Errorf("compiling rule %s: %w", bundles.Quote(text), clipped(err))
	}
	if len(rules.byText) >= maxRules {
		clear(rules.byText)
	}
	rule := &Rule{Text: text, program: program}
	rules.byText[text] = rule
	return rule, nil
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

// unknownSizes leaves the estimate to what the text alone says.
type unknownSizes struct{}

// EstimateSize knows no size.
func (unknownSizes) EstimateSize(cost.AstNode) *cost.SizeEstimate { return nil }

// EstimateCallCost knows no cost.
func (unknownSizes) EstimateCallCost(string, string, *cost.AstNode, []cost.AstNode) *cost.CallEstimate { //nolint:gocritic // the interface has it so
	return nil
}

// met says whether the rule is true for an operator. One that cannot be
// evaluated, or not within the limits, is not.
func (r *Rule) met(s *Subject, m *Meter) bool {
	properties, ok := values(s.Properties)
	if !ok || m.spent > maxMetered {
		return false
	}
	result, details, err := r.program.Eval(map[string]any{"properties": properties})
	if spent := details.ActualCost(); spent != nil {
		m.spent += *spent
	} else {
		m.spent += maxCost
	}
	return err == nil && result == types.True
}

// Meter adds up what rules take where many operators are asked, such as those of
// a whole catalog. When it is too much, the rules are not met by those that come
// after. The zero value is ready.
type Meter struct{ spent uint64 }

// values gives properties as expressions see them; false when they are too large
// or no JSON.
func values(properties []Property) (ref.Val, bool) {
	size := 0
	list := make([]ref.Val, len(properties))
	for i, p := range properties {
		if size += len(p.Type) + len(p.Value); size > maxValue {
			return nil, false
		}
		var decoded any
		if err := json.Unmarshal([]byte(p.Value), &decoded); err != nil {
			return nil, false
		}
		list[i] = types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{
			types.String("type"): types.String(p.Type), types.String("value"): valueOf(decoded),
		})
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list), true
}

// valueOf converts decoded JSON. The values remember their sizes, which those
// that CEL would make of it do not.
func valueOf(decoded any) ref.Val {
	switch v := decoded.(type) {
	case map[string]any:
		out := make(map[ref.Val]ref.Val, len(v))
		for key, value := range v {
			out[types.String(key)] = valueOf(value)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, out)
	case []any:
		out := make([]ref.Val, len(v))
		for i := range v {
			out[i] = valueOf(v[i])
		}
		return types.NewRefValList(types.DefaultTypeAdapter, out)
	default:
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
}
