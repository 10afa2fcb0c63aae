// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/pkg/evidence"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

func packed(t *testing.T) *archive {
	a := newArchive(t)
	a.Pack()
	return a
}

// Section 6 of the review of remediation: evidence get prints what seed 000 wants of a packet.
func TestEvidencePacket_Golden(t *testing.T) {
	a := packed(t)
	for name, args := range map[string][]string{
		"packet":      {"done"},
		"packet-wide": {"done", "-o", "wide"},
		"packet-json": {"done", "-o", "json"},
		"packet-step": {"done", "--step", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", append([]string{"evidence", "get", "--evidence", a.Dir}, args...)...)
			if got.Code != 0 || got.Stderr != "" {
				t.Errorf("%q gave %d, %s", args, got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestEvidencePacket_TellsWhichBodyIsNotBelieved(t *testing.T) {
	digest := evidence.Digest([]byte(clitest.BodyBefore))
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"one that was changed": {
			func(t *testing.T, path string) { clitest.Must(t, os.WriteFile(path, []byte(`{"spec":{}}`), 0o600)) },
			"digest mismatch: the content has the digest " + evidence.Digest([]byte(`{"spec":{}}`)),
		},
		"one that is gone": {func(t *testing.T, path string) { clitest.Must(t, os.Remove(path)) }, "the store lacks the body that the records name"},
	} {
		t.Run(name, func(t *testing.T) {
			a := packed(t)
			path := filepath.Join(a.Dir, evidence.BodyName(clitest.PolicyUID, digest))
			clitest.Must(t, os.Chmod(path, 0o600))
			test.spoil(t, path)
			run := func(args ...string) clitest.Answer {
				return clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", append([]string{"evidence", "get", "done", "--evidence", a.Dir}, args...)...)
			}
			got := run()
			if want := "Before of step 0  " + actions.ShortenHash(digest) + "  " + test.want + "\n"; got.Code != 0 || !strings.Contains(got.Stdout, want) {
				t.Errorf("%d: %q is missing in\n%s", got.Code, want, got.Stdout)
			}
			if want := "Warning: the store has 1 problem; kubectl plumbline evidence verify tells which\n"; got.Stderr != want {
				t.Errorf("got %q, want %q", got.Stderr, want)
			}
			if got := run("-o", "json"); !strings.Contains(got.Stdout, test.want) || strings.Contains(got.Stdout, "evil:1") {
				t.Errorf("got\n%s", got.Stdout)
			}
		})
	}
}

// Two plans may have one name, one after the other: a packet is about one of them.
func TestEvidencePacket_IsAboutOnePlan(t *testing.T) {
	a := packed(t)
	later := clitest.DecisionOf(evidence.KindPlanCreated, "done", clitest.Now)
	later.Plan.UID, later.Subject.UID = "uid-of-the-second", "uid-of-the-second"
	a.Append(later)
	got := clitest.Cluster{Objects: filled(t).cluster()}.Run(t, verbs, "", "evidence", "get", "done", "--evidence", a.Dir, "-o", "json")
	var packet struct {
		EvidencePacketID string
		Plan             struct{ UID string }
		Records          []any
	}
	clitest.Must(t, json.Unmarshal([]byte(got.Stdout), &packet))
	if packet.EvidencePacketID != clitest.PolicyUID+".7-7" || packet.Plan.UID != "uid-of-the-second" || len(packet.Records) != 1 {
		t.Errorf("the packet is %+v", packet)
	}
}
