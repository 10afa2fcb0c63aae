// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestTheCommandBehindTheFlagsIsTheUsers(t *testing.T) {
	folder := t.TempDir()
	own := filepath.Join(folder, "plumbline.cfg")
	s, err := parse(right(folder, "--", "haproxy", "-f", "a.cfg", "-f", own, "-f", "b.cfg", "--", "-d"), nothing, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a.cfg", "b.cfg"}, s.configurations(own)); diff != "" {
		t.Errorf("the user's files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a:1", "b:2"}, s.addresses()); diff != "" {
		t.Errorf("the servers (-want +got):\n%s", diff)
	}
}

func TestOptionsThatAreWrongAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no verb":               {nil, "want `run [flags] -- program arguments`"},
		"another program":       {right("", "--connector=nginx", "--", "nginx"), `--connector: "nginx" is not known`},
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
