// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/journal"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

func TestAVerdictIsFoundByTheNextRunThoughThisOneBrokeOffInALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "journal")
	first, second := mutation.Key{File: "p.go", Old: "a"}, mutation.Key{File: "p.go", Old: "b"}
	write(t, path, first, campaign.Killed)
	if err := appendText(path, `{"Digest":"d","Mut`); err != nil {
		t.Fatal(err)
	}
	write(t, path, second, campaign.Survived)

	j := open(t, path)
	for key, want := range map[mutation.Key]campaign.Verdict{first: campaign.Killed, second: campaign.Survived} {
		if got, ok := j.Find("d", key); !ok || got != want {
			t.Errorf("the verdict of %s is %q, want %q", key, got, want)
		}
	}
}

func TestAVerdictOfOtherTestsIsNotFound(t *testing.T) {
	path, key := filepath.Join(t.TempDir(), "journal"), mutation.Key{File: "p.go"}
	write(t, path, key, campaign.Survived)
	if v, ok := open(t, path).Find("e", key); ok {
		t.Errorf("found %q", v)
	}
}

func open(t *testing.T, path string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func write(t *testing.T, path string, key mutation.Key, verdict campaign.Verdict) {
	t.Helper()
	if err := open(t, path).Write("d", key, verdict); err != nil {
		t.Fatal(err)
	}
}

func appendText(path, text string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
