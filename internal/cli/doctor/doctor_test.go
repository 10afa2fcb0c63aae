// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// doctorOn runs the command on a snapshot, or an error in its place.
func doctorOn(t *testing.T, s *doctor.Snapshot, err error, args ...string) clitest.Answer {
	t.Helper()
	inv, finish := clitest.NewInvocation(t, "")
	a := &app{Invocation: inv}
	cmd := a.doctorCommandOn(func(context.Context, *doctorOptions) (*doctor.Snapshot, error) { return s, err })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(a.Out)
	cmd.SetErr(a.ErrOut)
	ran, runErr := cmd.ExecuteContextC(t.Context())
	return finish(invocation.Report(ran, runErr, a.ErrOut))
}

// ailing is an installation of which little is known, and that bad.
func ailing() *doctor.Snapshot {
	return &doctor.Snapshot{
		Now: clitest.Now, Namespace: "plumbline-system", User: doctor.Got(doctor.User{Name: "alice\x1b[2J"}),
		Server:        doctor.Got(doctor.ServerVersion{GitVersion: "v1.36.3", Major: 1, Minor: 36}),
		AssessorLease: doctor.Gone[doctor.Lease](),
		Webhooks:      doctor.Got([]doctor.Webhook{{Mutating: true, Configuration: "plumbline", Name: "spec-hash.plumbline.dev"}}),
		Roles:         doctor.Read[doctor.Roles]{Right: "list clusterroles"},
	}
}

func TestDoctor_Golden(t *testing.T) {
	cases := map[string][]string{
		"text": nil,
		"json": {"-o", "json"},
		"skip": {"--skip", "webhook.registration,assessor.leader"},
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			got := doctorOn(t, ailing(), nil, args...)
			if got.Code != invocation.ExitDifferent || got.Stderr != "" {
				t.Errorf("got code %d and %q", got.Code, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), got.Stdout)
		})
	}
}

func TestDoctor_ExitCodes(t *testing.T) {
	every := strings.Join(checkIDs(), ",")
	without := func(kept ...string) string {
		var ids []string
		for _, id := range checkIDs() {
			if !strings.Contains(strings.Join(kept, ","), id) {
				ids = append(ids, id)
			}
		}
		return strings.Join(ids, ",")
	}
	cases := map[string]struct {
		args []string
		err  error
		code int
		says string // on standard error
	}{
		"nothing was asked":                        {args: []string{"--skip", every}, code: 0},
		"a warning passes":                         {args: []string{"--skip", without("install.apiserver")}, code: 0},
		"what would be a warning is unknown":       {args: []string{"--skip", without("details.redis")}, code: 0},
		"and that is asked for":                    {args: []string{"--skip", without("details.redis"), "--fail-on=warning"}, code: 2, says: "error: no finding, but these checks had no answer: details.redis\n"},
		"what would be critical is unknown":        {args: []string{"--skip", without("rbac.admins")}, code: 2, says: "error: no finding, but these checks had no answer: rbac.admins\n"},
		"a critical finding outweighs the unknown": {args: []string{"--skip", without("rbac.admins", "assessor.leader")}, code: 1},
		"it could not run":                         {err: errors.New("no route"), code: 2, says: "error: no route\n"},
		"a severity that does not exist":           {args: []string{"--fail-on=info"}, code: 2, says: "error: invalid --fail-on \"info\", want critical or warning\nSee 'doctor -h' for help and examples\n"},
		"a check that does not exist":              {args: []string{"--skip=all"}, code: 2, says: "error: there is no check \"all\" to skip\nSee 'doctor -h' for help and examples\n"},
		"a format that does not exist":             {args: []string{"-o", "xml"}, code: 2, says: "error: unable to match a printer suitable for the output format \"xml\", allowed formats are: json,yaml,jsonpath=,go-template=\nSee 'doctor -h' for help and examples\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := doctorOn(t, ailing(), tc.err, tc.args...)
			if got.Code != tc.code || got.Stderr != tc.says {
				t.Errorf("got code %d and %q, want %d and %q\n%s", got.Code, got.Stderr, tc.code, tc.says, got.Stdout)
			}
		})
	}
}

// TestDoctor_EveryFormatHoldsTheSame compares what a program reads in one with
// what it reads in the other.
func TestDoctor_EveryFormatHoldsTheSame(t *testing.T) {
	var report doctor.Report
	if err := json.Unmarshal([]byte(doctorOn(t, ailing(), nil, "-o", "json").Stdout), &report); err != nil {
		t.Fatal(err)
	}
	want := doctor.Examine(ailing())
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("the report and its JSON differ (-want +got):\n%s", diff)
	}
	text := doctorOn(t, ailing(), nil).Stdout
	for _, f := range want.Findings {
		if !strings.Contains(text, f.ID) {
			t.Errorf("the text lacks %s", f.ID)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("a user name can move the cursor")
	}
}
