// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// row of the table: what was decided, its subscribers, the decisions, six times, and how many
// acknowledgments are missing.
var row = regexp.MustCompile(`(?m)^\| (one|hundred), (0|40) pods replaced a second \| ([0-9]+) \| ([0-9]+)(?: \| \S+){6} \| ([0-9]+) \|`)

// figure of the three that the benchmark is for: what is wanted, and what was measured.
var figure = regexp.MustCompile(`(?m)^\| (processor of the replica|a decision to the last of [0-9]+ confirmations, p99 \(p50\)|memory of a connected proxy, after collections) \| [0-9]\S*(?: \S+)? \| [0-9]`)

// The benchmark of the whole path: each decision comes from a real API server to the proxies that
// depend on its Service, also while pods are replaced.
func TestDecisionsReachTheirProxiesThroughTheWholePath(t *testing.T) {
	rotation.Share(t, 3)
	t.Parallel() // it has a cluster of its own
	program := filepath.Join(t.TempDir(), "xdsload")
	build := child.Bind(exec.CommandContext(t.Context(), "go", "build", "-o", program, "./hack/xdsload"))
	build.Dir = rendered.RepositoryDir()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out, errs bytes.Buffer
	load := child.Bind(exec.CommandContext(t.Context(), program, "path", "--proxies=20", "--services=40", "--dependencies=5", "--scopes=10", "--rounds=3", "--limit=3m"))
	load.Stdout, load.Stderr = &out, &errs
	if err := load.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	rows := row.FindAllStringSubmatch(out.String(), -1)
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4, in\n%s", len(rows), &out)
	}
	if n := len(figure.FindAllString(out.String(), -1)); n != 3 {
		t.Errorf("%d figures, want 3, in\n%s", n, &out)
	}
	for _, r := range rows {
		if r[3] == "0" || r[4] != "3" || r[5] != "0" {
			t.Errorf("%s: want subscribers, 3 decisions and none missing", strings.TrimSpace(r[0]))
		}
	}
}
