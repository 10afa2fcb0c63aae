// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"flag"
	"fmt"
	"strings"
)

// EnvPrefix begins the name of every environment variable that stands in for a flag.
const EnvPrefix = "PLUMBLINE_"

// EnvName is the environment variable of a flag, e.g. PLUMBLINE_REDIS_ADDRESS.
func EnvName(flagName string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

// Parse reads args into the flags of fs; a flag that args leave out takes the
// value of its environment variable, when lookup knows one. A flag wins over
// its variable, also when it repeats the default, and over those of its aliases. Arguments that are no flags
// are an error. flag.ErrHelp is returned as it is.
func Parse(fs *flag.FlagSet, args []string, lookup func(string) (string, bool)) error {
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("parsing arguments: unexpected argument %q", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) {
		for _, name := range namesOf(f) {
			given[name] = true
		}
	})
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		if given[f.Name] {
			return
		}
		variable := variableOf(f)
		value, ok := lookup(variable)
		if !ok {
			return
		}
		if err := fs.Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("parsing environment variable %s: %w", variable, err))
		}
	})
	return errors.Join(errs...)
}
