// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
)

// verbs are those of all groups.
var verbs = func() (all []clitest.Verb) {
	for _, g := range groups {
		all = append(all, g.verbs...)
	}
	return all
}()

func TestRun_UsageErrorsGiveTheHint(t *testing.T) {
	cases := map[string]struct {
		args []string
		want clitest.Answer
	}{
		"unknown command": {
			[]string{"hsh"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unknown command \"hsh\" for \"kubectl plumbline\"\n\nDid you mean this?\n\thash\n\nSee 'kubectl plumbline -h' for help and examples\n"},
		},
		"unknown flag": {
			[]string{"hash", "--foo"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unknown flag: --foo\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"unknown shorthand": {
			[]string{"status", "-x"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unknown shorthand flag: 'x' in -x\nSee 'kubectl plumbline status -h' for help and examples\n"},
		},
		"diff keeps exit code 1 for differences": {
			[]string{"diff", "--foo"}, clitest.Answer{Code: 2, Stdout: "", Stderr: "error: unknown flag: --foo\nSee 'kubectl plumbline diff -h' for help and examples\n"},
		},
		"diff in an unknown format": {
			[]string{"diff", "deploy/web", "-o", "wide"}, clitest.Answer{Code: 2, Stdout: "", Stderr: "error: unable to match a printer suitable for the output format \"wide\", allowed formats are: json,yaml,jsonpath=,go-template=\nSee 'kubectl plumbline diff -h' for help and examples\n"},
		},
		"version takes no arguments": {
			[]string{"version", "x"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unexpected arguments: x\nSee 'kubectl plumbline version -h' for help and examples\n"},
		},
		"hash of nothing": {
			[]string{"hash"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: give documents with -f FILE (- for standard input), or a live object as TYPE/NAME\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"hash of a file and an object": {
			[]string{"hash", "-f", "-", "deploy/web"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: -f and TYPE/NAME exclude each other\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"bare needs a file": {
			[]string{"hash", "deploy/web", "--bare"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --bare needs -f\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"unknown algorithm": {
			[]string{"hash", "-f", "-", "--algorithm", "md5"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unknown algorithm \"md5\", want pl1, pl2 or ddem002\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"standard input twice": {
			[]string{"hash", "-f", "-", "-f", "-"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: -f - can be given once\nSee 'kubectl plumbline hash -h' for help and examples\n"},
		},
		"accept without any object": {
			[]string{"accept"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: name objects as TYPE/NAME, or select them with --all, -l, --since or --by\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"accept of a type alone is not bulk by accident": {
			[]string{"accept", "deploy"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: name objects as TYPE/NAME, or select them with --all, -l, --since or --by\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"accept in all namespaces alone is not all": {
			[]string{"accept", "-A"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: name objects as TYPE/NAME, or select them with --all, -l, --since or --by\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"accept of a name with a bulk filter": {
			[]string{"accept", "deploy/web", "--by", "bob"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --all, --since and --by select in bulk and exclude TYPE/NAME\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"an age of nothing": {
			[]string{"accept", "--since", "0s"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: name objects as TYPE/NAME, or select them with --all, -l, --since or --by\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"a negative age": {
			[]string{"accept", "--since", "-1h"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --since must be longer than 0, not -1h0m0s\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"a filter by nobody": {
			[]string{"accept", "--all", "--by", ""}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --by needs a user name\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"a reason longer than the API takes": {
			[]string{"accept", "deploy/web", "--reason", strings.Repeat("é", 257)}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --reason has 257 characters, more than 256\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"an unknown dry run": {
			[]string{"accept", "deploy/web", "--dry-run=maybe"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: invalid dry-run value (maybe). Must be \"none\", \"server\", or \"client\"\nSee 'kubectl plumbline accept -h' for help and examples\n"},
		},
		"history of a revision before the first": {
			[]string{"history", "deploy/web", "--revision", "0"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: revisions are numbered from 1, not 0\nSee 'kubectl plumbline history -h' for help and examples\n"},
		},
		"history of a broken range": {
			[]string{"history", "deploy/web", "--diff", "1-2"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: invalid --diff \"1-2\", want A..B\nSee 'kubectl plumbline history -h' for help and examples\n"},
		},
		"history cannot print and compare": {
			[]string{"history", "deploy/web", "--diff", "1..2", "--revision", "1"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: --revision and --diff exclude each other\nSee 'kubectl plumbline history -h' for help and examples\n"},
		},
		"an unsupported shell": {
			[]string{"completion", "tcsh"}, clitest.Answer{Code: 1, Stdout: "", Stderr: "error: unsupported shell type \"tcsh\", want one of bash, zsh, fish, powershell\nSee 'kubectl plumbline completion -h' for help and examples\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, clitest.RunOffline(t, verbs, "", tc.args...)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.args, diff)
			}
		})
	}
}

func TestRun_OfflineCommands(t *testing.T) {
	cases := map[string]struct {
		args []string
		want []string // parts of standard output
	}{
		"help":                  {[]string{"-h"}, []string{"Commands:", "kubectl plumbline [command]"}},
		"no argument":           {nil, []string{"Commands:"}},
		"help of a command":     {[]string{"accept", "-h"}, []string{"Examples:", "kubectl plumbline accept deploy/web", "--since duration"}},
		"help as a command":     {[]string{"help", "hash"}, []string{"kubectl plumbline hash -f deploy.yaml"}},
		"options":               {[]string{"options"}, []string{"--kubeconfig", "--context", "--namespace", "--as string"}},
		"version":               {[]string{"version", "--client"}, []string{"Client Version: v0.0.0-test\n"}},
		"version as JSON":       {[]string{"version", "--client", "-o", "json"}, []string{`"clientVersion": "v0.0.0-test"`}},
		"version as YAML":       {[]string{"version", "--client", "-o", "yaml"}, []string{"clientVersion: v0.0.0-test\n"}},
		"the completion script": {[]string{"completion"}, []string{"#!/bin/sh\n", `exec kubectl plumbline __complete "$@"`}},
		"completion of bash":    {[]string{"completion", "bash"}, []string{"__start_kubectl-plumbline"}},
		"completion of zsh":     {[]string{"completion", "zsh"}, []string{"#compdef kubectl-plumbline"}},
		"completion of fish":    {[]string{"completion", "fish"}, []string{"complete -c kubectl-plumbline"}},
		"completion of pwsh":    {[]string{"completion", "powershell"}, []string{"kubectl-plumbline"}},
		"connection flags hide": {[]string{"status", "-h"}, []string{`Use "kubectl plumbline options"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunOffline(t, verbs, "", tc.args...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %q", tc.args, got.Code, got.Stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.Stdout, want) {
					t.Errorf("%q does not print %q:\n%s", tc.args, want, got.Stdout)
				}
			}
		})
	}
}

// halt --cluster was a switch of its own and hid kubectl's --cluster NAME: in an incident nobody could
// name the cluster of the kubeconfig.
func TestNoCommandHidesAFlagOfKubectl(t *testing.T) {
	root := NewCommand(invocation.Environment{})
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if root.PersistentFlags().Lookup(f.Name) != nil {
				t.Errorf("%s --%s hides the flag of kubectl with this name", cmd.CommandPath(), f.Name)
			}
			if f.Shorthand != "" && root.PersistentFlags().ShorthandLookup(f.Shorthand) != nil {
				t.Errorf("%s -%s hides the flag of kubectl with this letter", cmd.CommandPath(), f.Shorthand)
			}
		})
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(root)
}
