// SPDX-License-Identifier: Apache-2.0

package options

import (
	"flag"
	"fmt"
)

// Alias is another name of a flag, with an environment variable of its own in place of
// that by [EnvName].
type Alias struct{ Flag, Variable string }

// AddAliased registers a flag that may also be given by its aliases. The target is nil as
// long as no value is given. Two names with different values are an error, which names both.
func AddAliased[T comparable](fs *flag.FlagSet, target **T, parse func(string) (T, error), name, usage string, aliases ...Alias) {
	family := &family[T]{target: target, parse: parse, given: map[string]T{}}
	fs.Var(&aliased[T]{family, name, EnvName(name)}, name, usage)
	family.names = append(family.names, name)
	for _, a := range aliases {
		fs.Var(&aliased[T]{family, a.Flag, a.Variable}, a.Flag, "another name of --"+name)
		family.names = append(family.names, a.Flag)
	}
}

// family is a value with several names.
type family[T comparable] struct {
	target **T
	parse  func(string) (T, error)
	names  []string
	// given has the value of each name that has one.
	given map[string]T
}

// aliased is one name of a value; it is a flag.Value and a member.
type aliased[T comparable] struct {
	*family[T]
	name, env string
}

// member is a flag with other names. A name that the arguments give wins over the
// variables of all of them.
type member interface {
	others() []string
	variable() string
}

func (a *aliased[T]) others() []string { return a.names }
func (a *aliased[T]) variable() string { return a.env }

// String implements flag.Value; there is no default to show.
func (*aliased[T]) String() string { return "" }

// Set implements flag.Value. A name that is given again replaces its own value.
func (a *aliased[T]) Set(text string) error {
	value, err := a.parse(text)
	if err != nil {
		return err
	}
	for _, other := range a.names {
		if before, ok := a.given[other]; ok && other != a.name && before != value {
			return fmt.Errorf("%v contradicts --%s, which is %v; give one of the two", value, other, before)
		}
	}
	a.given[a.name] = value
	*a.target = &value
	return nil
}

// variableOf is the environment variable of a flag.
func variableOf(f *flag.Flag) string {
	if m, ok := f.Value.(member); ok {
		return m.variable()
	}
	return EnvName(f.Name)
}

// namesOf are all names that mean what the flag means, its own included.
func namesOf(f *flag.Flag) []string {
	if m, ok := f.Value.(member); ok {
		return m.others()
	}
	return []string{f.Name}
}
