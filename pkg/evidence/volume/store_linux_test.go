// SPDX-License-Identifier: Apache-2.0

package volume_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/evidence"
)

// small is a real file system of a MiB. Mounting takes root.
func small(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system takes root; run as root to test a full and a read-only volume")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if errors.Is(err, syscall.EPERM) {
			t.Skip("mounting is not allowed here, though this is root: a full and a read-only volume are not tested")
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullVolume: the record that does not fit is not there by half, those
// before it are whole, Ready says so, and with room again it goes on.
func TestFullVolume(t *testing.T) {
	dir := small(t)
	s := open(t, dir)
	data := make([]byte, evidence.MaxEnvelope)
	written := int64(0)
	var err error
	for err == nil && written < 1000 {
		if err = s.Create(t.Context(), evidence.Name("chain", written+1), data); err == nil {
			written++
		}
	}
	if reasonOf(err) != evidence.StoreFull {
		t.Fatalf("after %d records: got %v, want Full", written, err)
	}
	if err := s.Ready(t.Context()); reasonOf(err) != evidence.StoreFull {
		t.Errorf("ready: got %v, want Full", err)
	}
	listed := int64(0)
	for name, err := range s.List(t.Context(), "chain") {
		if err != nil {
			t.Fatal(err)
		}
		listed++
		if got, err := s.Read(t.Context(), name); err != nil || len(got) != len(data) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	if listed != written {
		t.Errorf("%d records are listed, %d were written", listed, written)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=2m"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), evidence.Name("chain", written+1), data); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func TestReadOnlyVolume(t *testing.T) {
	dir := small(t)
	s := open(t, dir)
	if err := s.Create(t.Context(), evidence.Name("chain", 1), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), evidence.Name("chain", 2), []byte("x")); reasonOf(err) != evidence.StoreReadOnly {
		t.Errorf("create: got %v, want ReadOnly", err)
	}
	if err := s.Ready(t.Context()); reasonOf(err) != evidence.StoreReadOnly {
		t.Errorf("ready: got %v, want ReadOnly", err)
	}
	if data, err := s.Read(t.Context(), evidence.Name("chain", 1)); err != nil || string(data) != "x" {
		t.Errorf("read: %q, %v", data, err)
	}
}

// TestFullVolume_NoRecordIsLost: a chain goes on where the volume was full, and
// is whole.
func TestFullVolume_NoRecordIsLost(t *testing.T) {
	dir := small(t)
	s := open(t, dir)
	private, public, err := evidence.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := evidence.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ParseKeyring(public)
	if err != nil {
		t.Fatal(err)
	}
	w := evidence.Writer{Store: s, Signer: signer, Keys: keys}
	head, refused := evidence.Head{}, false
	for i := int32(0); head.Sequence < 400; i++ {
		sealed, err := w.Append(t.Context(), head, record(i))
		if !refused && reasonOf(err) == evidence.StoreFull {
			refused = true
			if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=8m"); err != nil {
				t.Fatal(err)
			}
			sealed, err = w.Append(t.Context(), head, record(i))
		}
		if err != nil {
			t.Fatal(err)
		}
		head = sealed.Head()
	}
	report, err := evidence.Verify(t.Context(), s, keys, evidence.Options{Heads: map[string]evidence.Head{"policy": head}})
	if err != nil || !report.OK() || report.Chains[0].Records != 400 {
		t.Errorf("got %+v, %v", report, err)
	}
	if !refused {
		t.Error("the volume was never full")
	}
}

func record(i int32) evidence.Record {
	hash := "sha256:" + strings.Repeat("a", 64)
	return evidence.Record{
		Kind: evidence.KindPlanCreated, At: time.Unix(1, 0), Occurrence: i, Chain: evidence.Chain{UID: "policy"},
		Subject:     evidence.Subject{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web", UID: "u", Hash: hash},
		InitiatedBy: evidence.InitiatedBySystem, Builder: evidence.Builder{Version: "test"},
	}
}
