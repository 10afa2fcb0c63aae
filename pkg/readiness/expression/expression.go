// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/util/json"
)

const (
	// MaxBytes bounds an expression, as the schema of GuardDefaults does.
	MaxBytes = 1024
	// costLimit bounds an evaluation. The API server gives this much to one expression
	// of an admission policy (PerCallLimit), which is about a tenth of a second.
	costLimit = 1_000_000
	// maxNesting bounds the depth of an expression.
	maxNesting = 50
	// variable is the object that a rule is about.
	variable = "object"
)

// environment is made once, when the first expression is compiled.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(variable, cel.DynType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ParserRecursionLimit(maxNesting),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
	)
})

// Program is a compiled rule.
type Program struct{ program cel.Program }

// Compile compiles a rule. The error is one line, with line and column of what is wrong.
func Compile(text string) (*Program, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the expression has %d bytes, more than %d", len(text), MaxBytes)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("making the environment of expressions: %w", err)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if out := ast.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, notABool(out.String())
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost))
	if err != nil {
		return nil, oneLine(err)
	}
	return &Program{program}, nil
}

// firstOf is the first of what is wrong with an expression.
func firstOf(issues *cel.Issues) error {
	for _, e := range issues.Errors() {
		return fmt.Errorf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, strings.Join(strings.Fields(e.Message), " "))
	}
	return oneLine(issues.Err())
}

func oneLine(err error) error { return errors.New(strings.Join(strings.Fields(err.Error()), " ")) }

func notABool(what string) error {
	article := "a"
	if strings.ContainsAny(what[:1], "aeiou") {
		article = "an"
	}
	return fmt.Errorf("the result is %s %s, not a bool", article, what)
}

// Holds says whether an object, given as JSON, meets the rule. It fails when that cannot be
// told: for a field that is not there, or an evaluation that costs too much.
func (p *Program) Holds(object []byte) (bool, error) {
	var value map[string]any
	if err := json.Unmarshal(object, &value); err != nil {
		return false, fmt.Errorf("reading the object: %w", err)
	}
	out, _, err := p.program.Eval(map[string]any{variable: value})
	if err != nil {
		return false, oneLine(err)
	}
	if out.Type() != types.BoolType {
		return false, notABool(out.Type().TypeName())
	}
	return out == types.True, nil
}

// maxPrograms bounds a cache. A GuardDefaults has at most 32 rules.
const maxPrograms = 512

// Cache keeps compiled rules by their text. The zero Cache is empty.
type Cache struct {
	mu       sync.Mutex
	programs map[string]compiled
}

type compiled struct {
	program *Program
	err     error
}

// Compile is [Compile], once for each text.
func (c *Cache) Compile(text string) (*Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, has := c.programs[text]
	if has {
		return known.program, known.err
	}
	if c.programs == nil || len(c.programs) >= maxPrograms {
		c.programs = map[string]compiled{}
	}
	known.program, known.err = Compile(text)
	c.programs[text] = known
	return known.program, known.err
}
