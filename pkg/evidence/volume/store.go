// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// Modes: evidence is for the process that writes it and its group, which is how
// a volume is shared with whoever verifies it.
const (
	dirMode  fs.FileMode = 0o750
	fileMode fs.FileMode = 0o640
)

// temporary begins the names of files that are not, or not yet, records.
const temporary = ".tmp-"

// Store is a directory with one directory for each chain.
type Store struct {
	dir     string
	calls   calls
	closing sync.Once
	closed  chan struct{}
}

var _ evidence.OwnedStore = (*Store)(nil)

// Open a directory, which must exist: one that is made where a volume should be
// mounted would hold the evidence until the container ends.
func Open(dir string) (*Store, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, failure("open", dir, err)
	}
	if !info.IsDir() {
		return nil, failure("open", dir, errors.New("is not a directory"))
	}
	return &Store{dir: dir, calls: make(calls, maxCalls), closed: make(chan struct{})}, nil
}

// Create a record; see [evidence.Store].
func (s *Store) Create(ctx context.Context, name string, data []byte) error {
	_, err := within(ctx, s, "create", name, func() (struct{}, error) { return struct{}{}, s.create(name, data) })
	return err
}

func (s *Store) create(name string, data []byte) error {
	path, err := s.path(name)
	if err != nil {
		return failure("create", name, err)
	}
	if err := s.makeChain(filepath.Dir(path)); err != nil {
		return failure("create", name, err)
	}
	temp, err := writeTemp(filepath.Dir(path), data)
	if err != nil {
		return failure("create", name, err)
	}
	err = os.Link(temp, path)
	// What is left of a temporary file takes room and harms nothing; Sweep takes it.
	_ = os.Remove(temp)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", name, evidence.ErrExists)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return failure("create", name, err)
	}
	return nil
}

// makeChain makes the directory of a chain durable before anything is in it.
func (s *Store) makeChain(dir string) error {
	err := os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(s.dir)
}

// writeTemp gives the name of a synced file; after an error there is none.
func writeTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(fileMode))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Read a record; see [evidence.Store].
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	return within(ctx, s, "read", name, func() ([]byte, error) { return s.read(name) })
}

func (s *Store) read(name string) ([]byte, error) {
	path, err := s.path(name)
	if err != nil {
		return nil, failure("read", name, err)
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, evidence.ErrNotFound)
	}
	if err != nil {
		return nil, failure("read", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(evidence.MaxSize(name))+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, failure("read", name, err)
	}
	return data, nil
}

// List names; see [evidence.Store]. Files that are no records are listed too,
// so that they are seen; temporary ones are not.
func (s *Store) List(ctx context.Context, chain string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := s.top(chain)
		if err != nil {
			yield("", failure("list", chain, err))
			return
		}
		for _, top := range entries {
			if !s.listOne(ctx, top, yield) {
				return
			}
		}
	}
}

// top gives the directories of chains and what else lies beside them.
func (s *Store) top(chain string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil || chain == "" {
		return entries, err
	}
	for _, e := range entries {
		if e.Name() == chain {
			return []fs.DirEntry{e}, nil
		}
	}
	return nil, nil
}

// listOne yields what is in one directory; false ends the listing.
func (s *Store) listOne(ctx context.Context, top fs.DirEntry, yield func(string, error) bool) bool {
	if skipped(top.Name()) {
		return true
	}
	if !top.IsDir() {
		return yield(top.Name(), nil)
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, top.Name()))
	if err = errors.Join(err, ctx.Err()); err != nil {
		yield("", failure("list", top.Name(), err))
		return false
	}
	for _, e := range entries {
		if !skipped(e.Name()) && !yield(top.Name()+"/"+e.Name(), nil) {
			return false
		}
	}
	return true
}

// skipped names: those of temporary files, and what a new ext4 volume has.
func skipped(name string) bool {
	return strings.HasPrefix(name, temporary) || name == "lost+found"
}

// Ready writes, links and removes a file of one byte, and asks the file system whether it
// has room for the largest record.
func (s *Store) Ready(ctx context.Context) error {
	_, err := within(ctx, s, "probe", s.dir, func() (struct{}, error) { return struct{}{}, s.ready() })
	return err
}

func (s *Store) ready() error {
	if err := hasRoom(s.dir); err != nil {
		return failure("probe", s.dir, err)
	}
	temp, err := writeTemp(s.dir, []byte{0})
	if err != nil {
		return failure("probe", s.dir, err)
	}
	linked := temp + "-link"
	err = os.Link(temp, linked)
	_ = os.Remove(linked)
	if err = errors.Join(err, os.Remove(temp)); err != nil {
		return failure("probe", s.dir, err)
	}
	return nil
}

// Sweep removes the temporary files that a killed process left. Another writer
// whose file it takes gets an error and tries again.
func (s *Store) Sweep(ctx context.Context) error {
	leftovers, err := filepath.Glob(filepath.Join(s.dir, "*", temporary+"*"))
	top, topErr := filepath.Glob(filepath.Join(s.dir, temporary+"*"))
	err = errors.Join(err, topErr)
	for _, path := range append(leftovers, top...) {
		if err = errors.Join(err, ctx.Err()); err != nil {
			break
		}
		if gone := os.Remove(path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err != nil {
		return failure("sweep", s.dir, err)
	}
	return nil
}

// path of a name that evidence.Name gives; no other can leave the directory.
func (s *Store) path(name string) (string, error) {
	if !filepath.IsLocal(name) || strings.Count(name, "/") > 1 {
		return "", errors.New("is no name of a record")
	}
	return filepath.Join(s.dir, filepath.FromSlash(name)), nil
}
