// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACommandStaysInTheForeground(t *testing.T) {
	for name, tc := range map[string]struct {
		command, configuration string
		want                   []string
	}{
		"the program alone":              {"nginx", "", []string{"nginx", "-c", DefaultUser, "-g", "daemon off;"}},
		"a configuration":                {"nginx|-c|/a/b.conf", "", []string{"nginx", "-c", "/a/b.conf", "-g", "daemon off;"}},
		"a configuration without a gap":  {"nginx|-c/a/b.conf", "", []string{"nginx", "-c", "/a/b.conf", "-g", "daemon off;"}},
		"other directives":               {"nginx|-g|worker_processes 2;", "", []string{"nginx", "-c", DefaultUser, "-g", "worker_processes 2; daemon off;"}},
		"the directive is there":         {"nginx|-g|daemon off;", "", []string{"nginx", "-c", DefaultUser, "-g", "daemon off;"}},
		"the directive is behind others": {"nginx|-g|pcre_jit on;daemon off;", "", []string{"nginx", "-c", DefaultUser, "-g", "pcre_jit on;daemon off;"}},
		"the configuration has it":       {"nginx", "user a;\n  daemon  off ;\n", []string{"nginx", "-c", DefaultUser}},
		"a comment speaks of a daemon":   {"nginx", "# the daemon off and on\n", []string{"nginx", "-c", DefaultUser, "-g", "daemon off;"}},
		"a prefix, a log, and silence":   {"nginx|-p|/p|-e|/e|-q", "", []string{"nginx", "-c", DefaultUser, "-p", "/p", "-e", "/e", "-q", "-g", "daemon off;"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ParseCommand(strings.Split(tc.command, "|"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.InForeground(tc.configuration)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The check has each argument but the configuration, and does not run in the foreground.
func TestACheckHasTheArgumentsOfTheUser(t *testing.T) {
	c, err := ParseCommand([]string{"nginx", "-c", "/a/b.conf", "-p", "/p", "-g", "pcre_jit on;"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"-p", "/p", "-g", "pcre_jit on;"}, c.Arguments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACommandThatDoesNotRunAnNginxIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ command, want string }{
		"a check":                    {"nginx|-t", `"-t" has no value`},
		"a signal":                   {"nginx|-s|reload", `"-s" is not -c`},
		"no option":                  {"nginx|start", `"start" is not -c`},
		"an option without a value":  {"nginx|-c", `"-c" has no value`},
		"a relative configuration":   {"nginx|-c|nginx.conf", `"nginx.conf" is not absolute`},
		"an argument that is empty":  {"nginx|", `"" has no value`},
		"an option that is a hyphen": {"nginx|-|a", `"-" is not -c`},
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := ParseCommand(strings.Split(tc.command, "|")); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%+v, %v, want %q", c, err, tc.want)
			}
		})
	}
}
