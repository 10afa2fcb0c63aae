// SPDX-License-Identifier: Apache-2.0

package waits_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

func TestInterval(t *testing.T) {
	tests := map[string]struct {
		attempt   int
		want, hot time.Duration
	}{
		"the first pause is short":                   {0, 20 * time.Millisecond, 1 * time.Millisecond},
		"the second pause is twice as long":          {1, 40 * time.Millisecond, 2 * time.Millisecond},
		"the third pause is twice as long again":     {2, 80 * time.Millisecond, 4 * time.Millisecond},
		"the fourth pause doubles for the last time": {3, 160 * time.Millisecond, 8 * time.Millisecond},
		"the fifth pause no longer doubles":          {4, 200 * time.Millisecond, 16 * time.Millisecond},
		"a late pause is the longest":                {1_000_000, 200 * time.Millisecond, 20 * time.Millisecond},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := waits.Interval(tc.attempt); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if got := waits.HotInterval(tc.attempt); got != tc.hot {
				t.Errorf("got %s on a hot path, want %s", got, tc.hot)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	w := waits.Wait{What: "the plan has ended", Seconds: 60.0204, Limit: 60}
	want := "waited 1m0.02s (limit 1m0s) until the plan has ended; last seen: it is Running"
	if diff := cmp.Diff(want, w.Failure(errors.New("it is Running"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsRecordedIsRead(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(waits.Variable, folder)
	want := []waits.Wait{
		{Package: "waits", Test: "TestOne", What: "it drifts", Seconds: 0.25, Limit: 30, Passed: true, Hot: waits.Detection},
		{Package: "waits", Test: "TestTwo/part", What: "a line\nand another", Seconds: 30, Limit: 30},
	}
	for i := range want {
		if err := waits.Record(&want[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "killed-1.jsonl"), []byte(`{"test":"TestTh`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := waits.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithoutAFolderNothingIsRecorded(t *testing.T) {
	t.Setenv(waits.Variable, "")
	if err := waits.Record(&waits.Wait{What: "it is so"}); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatDoesNotExistIsAnError(t *testing.T) {
	t.Setenv(waits.Variable, filepath.Join(t.TempDir(), "none"))
	if err := waits.Record(&waits.Wait{What: "it is so"}); err == nil || !strings.Contains(err.Error(), waits.Variable) {
		t.Errorf("got %v, want an error that names %s", err, waits.Variable)
	}
}

func TestALineThatIsNoRecordIsAnError(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.jsonl"), []byte("no record\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := waits.Read(folder); err == nil {
		t.Error("it was read")
	}
}
