// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the server as well: the program starts itself once more.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

func TestTwentyProxiesGetEverythingAndAcknowledgeEachStepFromAllServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.json")
	var out, errs bytes.Buffer
	args := []string{
		"--proxies=20", "--services=40", "--dependencies=5", "--rounds=2", "--churn=20", "--phase-limit=30s", "--limit=2m",
		"--servers=plumbline,snapshot,linear", "--counting", "--json=" + file,
	}
	if err := run(t.Context(), args, nil, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	t.Log(out.String())
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var results []Result
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 {
		t.Fatalf("there are %d results", len(results))
	}
	pushes := map[string]int{
		"cold start": 20, "weight step, one": 2, "weight step, hundred": 38, "weight step, all": 40, "endpoint step, all": 40,
		"reconnect with versions": 20, "reconnect without versions": 20,
		"mode slow: weight step of others": 36, "mode never-ACK: weight step of others": 36, "mode NACK-one: weight step of others": 36,
	}
	for _, r := range results {
		if len(r.Phases) != 13 || r.Full.Streams != 20 || r.Full.Heap == 0 || r.Full.Resident == 0 {
			t.Errorf("%s: %d phases, and the server uses %+v", r.Server, len(r.Phases), r.Full)
		}
		for _, p := range r.Phases {
			want, counted := pushes[p.Name]
			// Those who misbehaved may still do so when the next step comes, and may then
			// acknowledge it all the same.
			if p.Missing > 0 && r.Server == "plumbline" || counted && p.Pushes < want || p.Sent == 0 || p.ServerCPU == 0 {
				t.Errorf("%s: %+v, want %d pushes", r.Server, p, want)
			}
			if !strings.Contains(out.String(), p.Name) {
				t.Errorf("%s is not in the table", p.Name)
			}
		}
		if refused := r.Phases[10].Troubles["rejected"]; refused == 0 {
			t.Errorf("%s: nothing was refused in %+v", r.Server, r.Phases[10])
		}
	}
}

func TestWhatCannotBeDoneIsRefusedBeforeItBegins(t *testing.T) {
	for name, args := range map[string][]string{
		"too few services":      {"--services=50", "--dependencies=50"},
		"more files than are":   {"--proxies=100000000"},
		"nobody who misbehaves": {"--part=1"},
		"a server that is none": {"--servers=other", "--proxies=2", "--services=8", "--dependencies=4"},
	} {
		if err := run(t.Context(), args, nil, io.Discard, io.Discard); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestEachProcessNeedsAFileForEachConnectionAndHalfAsManyMore(t *testing.T) {
	if err := enough(10_000, 15_100); err != nil {
		t.Error(err)
	}
	if err := enough(10_000, 15_099); err == nil || !strings.Contains(err.Error(), "ulimit -n 15100") {
		t.Errorf("got %v", err)
	}
}

func TestAServerThatIsLateEndsTheTrialAndIsShown(t *testing.T) {
	var out bytes.Buffer
	args := []string{"--proxies=20", "--services=40", "--dependencies=5", "--phase-limit=1ns"}
	if err := run(t.Context(), args, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "cold start") || strings.Contains(out.String(), "weight step") {
		t.Errorf("the table is\n%s", &out)
	}
}
