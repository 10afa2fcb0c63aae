// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
	"github.com/plumbline-dev/plumbline/test/metricspage"
)

func nothing(string) (string, bool) { return "", false }

// right are arguments that are taken.
func right(folder string, more ...string) []string {
	return append([]string{"run", "--connector=haproxy", "--xds-servers=a:1,b:2", "--node=shop/edge-0", "--folder=" + folder}, more...)
}

func TestTheMetricsPageDescribesThisProcess(t *testing.T) {
	s, err := parse(right(t.TempDir(), "--", "haproxy"), nothing, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProcess(&s, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	metricspage.Check(t, "agent", p.registry)
}

const (
	page       = "../../docs/reference/agent.md"
	flagsBegin = "<!-- flags: begin, generated from the code; rewrite with UPDATE_GOLDEN=1 go test ./cmd/agent -->\n"
	flagsEnd   = "<!-- flags: end -->\n"
)

func TestThePageHasTheFlagsOfTheProcess(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), flagsBegin)
	_, after, ends := strings.Cut(rest, flagsEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the marks around its generated part", page)
	}
	var table strings.Builder
	table.WriteString("| Flag | Default | Meaning |\n|---|---|---|\n")
	new(settings).newFlags().VisitAll(func(f *flag.Flag) {
		value := ""
		if f.DefValue != "" {
			value = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&table, "| `--%s` | %s | %s |\n", f.Name, value, f.Usage)
	})
	golden.Check(t, page, before+flagsBegin+table.String()+flagsEnd+after)
}

func TestTheCommandBehindTheFlagsIsTheUsers(t *testing.T) {
	s, err := parse(right(t.TempDir(), "--", "haproxy", "-f", "a.cfg", "--", "-d"), nothing, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"haproxy", "-f", "a.cfg", "--", "-d"}, s.command); diff != "" {
		t.Errorf("the command (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:1", "b:2"}, s.addresses()); diff != "" {
		t.Errorf("the servers (-want +got):\n%s", diff)
	}
}

func TestTheFilesOfAUserAreThoseBeforeOurs(t *testing.T) {
	command := []string{"haproxy", "-f", "a.cfg", "-f", "/f/plumbline.cfg", "-f", "b.cfg", "-d"}
	if diff := cmp.Diff([]string{"a.cfg", "b.cfg"}, configurations(command, "/f/plumbline.cfg")); diff != "" {
		t.Errorf("the user's files (-want +got):\n%s", diff)
	}
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no verb":               {nil, "want `run [flags] -- program arguments`"},
		"another program":       {right("", "--connector=apache", "--", "httpd"), `--connector: "apache" is not known`},
		"a loss that is half":   {right("", "--reload-loss=Some", "--", "nginx"), `--reload-loss: "Some" is not Allowed or Refused`},
		"no program":            {right(""), "the program is missing"},
		"a server without port": {right("", "--xds-servers=a", "--", "haproxy"), "--xds-servers: address a: missing port"},
		"a node without pod":    {right("", "--node=edge-0", "--", "haproxy"), `--node: "edge-0" is not NAMESPACE/POD`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(tc.args, nothing, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
