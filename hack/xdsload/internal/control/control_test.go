// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/control"
)

func TestAServerThatIsNoneIsToldWithWhatItSaid(t *testing.T) {
	var errs bytes.Buffer
	if _, err := control.Start(t.Context(), "/bin/sh", []string{"-c", "echo why >&2; exit 3"}, nil, &errs); err == nil ||
		!strings.Contains(err.Error(), "exit status 3") || errs.String() != "why\n" {
		t.Errorf("got %v, and %q", err, &errs)
	}
}

func TestWhatAServerCannotDoIsAnError(t *testing.T) {
	s, err := control.Start(t.Context(), "/bin/sh", []string{"-c", `echo '{}'; read -r line; echo '{"Error":"no '"$PLACE"'"}'; read -r line`}, []string{"PLACE=room"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(control.Command{Op: control.Measure}); err == nil || !strings.Contains(err.Error(), "measure: no room") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Do(control.Command{Op: control.Await}); err == nil {
		t.Error("an answer came from nowhere")
	}
}

func TestOwnUsageIsThatOfThisProcess(t *testing.T) {
	held := bytes.Repeat([]byte{1}, 64<<20)
	with, err := control.Own(true)
	if err != nil {
		t.Fatal(err)
	}
	if held[len(held)-1] != 1 || with.Resident < 64<<20 || with.Heap < 64<<20 || with.CPU <= 0 || with.Goroutines < 1 {
		t.Errorf("with 64 MiB: %+v", with)
	}
}
