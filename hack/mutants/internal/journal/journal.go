// SPDX-License-Identifier: Apache-2.0

// Package journal keeps the verdicts of mutants in a file, so that a run that was
// stopped is carried on by the next one.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/plumbline-dev/plumbline/hack/mutants/internal/campaign"
	"github.com/plumbline-dev/plumbline/hack/mutants/internal/mutation"
)

// Journal holds verdicts. Its methods may be called at the same time.
type Journal struct {
	mu       sync.Mutex
	file     *os.File
	verdicts map[entryKey]campaign.Verdict
}

// entryKey is a mutant of a package whose files and tests have a digest. When one of
// these files changes, the verdict is out of date.
type entryKey struct {
	Digest string
	Mutant mutation.Key
}

type entry struct {
	entryKey
	Verdict campaign.Verdict
}

// Open opens the journal of a path, and makes it where there is none. A last line that
// was not written to its end is left out.
func Open(path string) (*Journal, error) {
	j := &Journal{verdicts: map[entryKey]campaign.Verdict{}}
	if err := j.read(path); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of the journal: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j.file = file
	return j, nil
}

func (j *Journal) read(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var e entry
		if json.Unmarshal(scanner.Bytes(), &e) == nil {
			j.verdicts[e.entryKey] = e.Verdict
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	return nil
}

// Find finds the verdict of a mutant.
func (j *Journal) Find(digest string, mutant mutation.Key) (campaign.Verdict, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v, ok := j.verdicts[entryKey{digest, mutant}]
	return v, ok
}

// Write writes the verdict of a mutant.
func (j *Journal) Write(digest string, mutant mutation.Key, verdict campaign.Verdict) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := entry{entryKey{digest, mutant}, verdict}
	j.verdicts[e.entryKey] = verdict
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("formatting an entry of the journal: %w", err)
	}
	// A line may follow one that was not written to its end.
	if _, err := j.file.Write(append(append([]byte("\n"), line...), '\n')); err != nil {
		return fmt.Errorf("writing to the journal: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
