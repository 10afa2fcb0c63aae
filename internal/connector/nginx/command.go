// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// DefaultUser is the main configuration of a command without -c, as packages of nginx have it.
const DefaultUser = "/etc/nginx/nginx.conf"

// Command is the command line of an nginx.
type Command struct {
	Binary string
	// User is the main configuration (-c).
	User string
	// Directives come before the configuration (-g).
	Directives string
	// others are arguments that a check has too.
	others []string
}

// ParseCommand reads the options that an nginx can run with: -c, -e, -g, -p and -q. The configuration is
// absolute, because a check reads a copy of it in another folder.
func ParseCommand(words []string) (Command, error) {
	if len(words) == 0 {
		return Command{}, errors.New("reading the command of nginx: it is empty")
	}
	c := Command{Binary: words[0], User: DefaultUser}
	for rest := words[1:]; len(rest) > 0; {
		option := rest[0]
		if option == "-q" {
			c.others, rest = append(c.others, option), rest[1:]
			continue
		}
		const letters = 2
		name, value := option[:min(letters, len(option))], option[min(letters, len(option)):]
		rest = rest[1:]
		if value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		switch {
		case value == "":
			return Command{}, fmt.Errorf("reading the command of nginx: %q has no value", option)
		case name == "-c":
			c.User = value
		case name == "-g":
			c.Directives = value
		case name == "-p" || name == "-e":
			c.others = append(c.others, name, value)
		default:
			return Command{}, fmt.Errorf("reading the command of nginx: %q is not -c, -e, -g, -p or -q", option)
		}
	}
	if !path.IsAbs(c.User) {
		return Command{}, fmt.Errorf("reading the command of nginx: the configuration %q is not absolute", c.User)
	}
	return c, nil
}

// Arguments returns all arguments but the configuration, which a check replaces.
func (c Command) Arguments() []string {
	arguments := slices.Clone(c.others)
	if c.Directives != "" {
		arguments = append(arguments, "-g", c.Directives)
	}
	return arguments
}

// background says whether nginx detaches from its parent.
var background = regexp.MustCompile(`(?m)(^|[;{\s])daemon\s+(on|off)\s*;`)

// InForeground returns the command with the directive that keeps nginx a child of its parent, unless the
// directives or the text of the main configuration have the directive.
func (c Command) InForeground(configuration string) []string {
	if !background.MatchString(c.Directives) && !background.MatchString(configuration) {
		c.Directives = strings.TrimSpace(c.Directives + " daemon off;")
	}
	return append([]string{c.Binary, "-c", c.User}, c.Arguments()...)
}
