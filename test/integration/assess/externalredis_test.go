// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// TestAnExternalRedisWithUserAndPassword runs the assessor as it is shipped
// against a Redis that it has to log in to, with the rights that the chart gives.
// With a wrong password nothing is lost but the names of those who scale, and
// the process says so; the right one needs no restart.
func TestAnExternalRedisWithUserAndPassword(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	const password = "the-right-one"
	port := strconv.Itoa(freeport.For(t))
	dir := t.TempDir()
	acl, file := filepath.Join(dir, "users.acl"), filepath.Join(dir, "password")
	// The test's own records come over the socket, by the default user.
	w.Must(os.WriteFile(acl, []byte("user default on nopass ~* +@all\n"+
		"user plumbline on >"+password+" ~plumbline:* resetchannels -@all +@stream +@connection +time -@admin -@dangerous\n"), 0o600))
	r := startRedis(t, "--port", port, "--bind", "127.0.0.1", "--aclfile", acl)
	w.Must(os.WriteFile(file, []byte("a wrong one\n"), 0o600))
	b := startBinary(t, "--redis-address=127.0.0.1:"+port, "--redis-username=plumbline", "--redis-password-file="+file)
	w.tells(b, "plumbline_assessor_admission_records_up", "0")
	w.Eventually("the log says why", func() error {
		said := b.Said()
		for _, words := range []string{"records of writes cannot be read", "WRONGPASS"} {
			if !strings.Contains(said, words) {
				return fmt.Errorf("it says\n%s", said)
			}
		}
		return nil
	})
	w.UnderGuard()
	for _, name := range []string{"web", "before", "after"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UntilIs("web", "Drifted: Changed "+imagePath+" by alice (Untrusted, WriterStamp)")
	w.scaleWithRecord(r, alice, "before", 5, false)
	w.Until("before", "it is drift by somebody unknown", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Actor.Class != v1alpha1.ActorUnknown {
			return fmt.Errorf("it is not")
		}
		return nil
	})

	w.Must(os.WriteFile(file, []byte(password+"\n"), 0o600))
	w.tells(b, "plumbline_assessor_admission_records_up", "1")
	w.scaleWithRecord(r, alice, "after", 5, false)
	w.UntilIs("after", "Drifted: Changed /spec/replicas by alice (Untrusted, Admission)")
	// The record of the time before was still there, and explains what it is about.
	w.UntilIs("before", "Drifted: Changed /spec/replicas by alice (Untrusted, Admission)")
	said := b.Said()
	if !strings.Contains(said, "records of writes can be read again") || strings.Contains(said, password) {
		t.Errorf("it says\n%s", said)
	}
}
