// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/details"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
	"github.com/plumbline-dev/plumbline/test/harness/server"
)

// redis is a real server on a socket of the test, and what writes records to it.
type redis struct {
	*server.Redis
	t      *testing.T
	writer *details.Writer
}

// startRedis starts one, with more options of redis-server if need be.
func startRedis(t *testing.T, options ...string) *redis {
	t.Helper()
	// The path of a socket may have 107 bytes, and t.TempDir is too long.
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // under the system's temporary directory
	starting, cancelStart := context.WithTimeout(t.Context(), patience)
	defer cancelStart()
	running, err := server.StartRedis(starting, dir, options...)
	if err != nil {
		t.Fatal(err)
	}
	r := &redis{Redis: running, t: t}
	t.Cleanup(r.Kill)
	c := details.NewClient(r.patient())
	t.Cleanup(func() { _ = c.Close() }) // the server goes away with it
	r.writer = details.NewWriter(c, "plumbline", 0, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.writer.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// patient is for tests that are not about a slow Redis: what a busy machine makes
// slow is no lost record.
func (r *redis) patient() details.Config {
	return details.Config{Address: r.Socket, CallBudget: patience}
}

func (r *redis) reader() option {
	c := details.NewClient(r.patient())
	r.t.Cleanup(func() { _ = c.Close() }) // the server goes away with it
	return withRecords(details.NewReader(c, "plumbline"))
}

// record writes what the webhook would.
func (r *redis) record(record specguard.WriteRecord) {
	r.t.Helper()
	record.APIVersion, record.Kind = "apps/v1", "Deployment"
	record.Time = time.Now()
	if !r.writer.Enqueue(record) {
		r.t.Fatal("the record was dropped")
	}
}

// store is record, and waits until Redis has it.
func (r *redis) store(record specguard.WriteRecord) {
	r.t.Helper()
	c := r.Client()
	defer func() { _ = c.Close() }() // only read
	length := func() int64 {
		n, err := c.XLen(r.t.Context(), "plumbline:details").Result()
		if err != nil {
			r.t.Fatal(err)
		}
		return n
	}
	before := length()
	r.record(record)
	poll.True(r.t, patience, "the record is in the stream", func() bool { return length() > before })
}

func recordOf(d *appsv1.Deployment, operation specguard.Operation, user string) specguard.WriteRecord {
	return specguard.WriteRecord{
		UID: string(d.UID), Namespace: d.Namespace, Name: d.Name, Operation: operation,
		ResourceVersionBefore: d.ResourceVersion, Identity: specguard.Identity{User: user},
	}
}

func recordOfScale(d *appsv1.Deployment, user string, replicas int32) specguard.WriteRecord {
	record := recordOf(d, specguard.OperationUpdate, user)
	record.Subresource, record.Replicas, record.Fields = "scale", &replicas, []string{"/spec/replicas"}
	return record
}

// scaleWithRecord scales, and records it before or after as the webhook's queue
// may have it.
func (w *world) scaleWithRecord(r *redis, user, name string, replicas int32, late bool) {
	w.t.Helper()
	record := recordOfScale(w.Live(name), user, replicas)
	if !late {
		r.record(record)
	}
	w.Scale(user, name, int(replicas))
	if late {
		w.Until(name, "the change is seen without its record", func(b *v1alpha1.Baseline) error {
			if b.Status.State != v1alpha1.StateDrifted {
				return fmt.Errorf("it is not")
			}
			return nil
		})
		r.record(record)
	}
}

func TestRecordsNameWhoScaled(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	r := startRedis(t)
	start(t, r.reader())
	w.UnderGuard()
	for _, name := range []string{"by-person", "by-autoscaler", "late-person", "late-autoscaler"} {
		w.Deploy(ci, name)
		w.UntilIs(name, "InSync")
	}
	w.scaleWithRecord(r, alice, "by-person", 5, false)
	w.UntilIs("by-person", "Drifted: Changed /spec/replicas by alice (Untrusted, Admission)")
	w.scaleWithRecord(r, hpa, "by-autoscaler", 6, false)
	w.UntilIs("by-autoscaler", "InSync [autoscaler /spec/replicas]")
	w.scaleWithRecord(r, alice, "late-person", 7, true)
	w.UntilIs("late-person", "Drifted: Changed /spec/replicas by alice (Untrusted, Admission)")
	w.scaleWithRecord(r, hpa, "late-autoscaler", 8, true)
	w.UntilIs("late-autoscaler", "InSync [autoscaler /spec/replicas]")
}

// TestAnAutoscalerThroughScale is the autoscaler as it is: fifty writes to
// /scale, each recorded, status writes between, and a person who edits meanwhile.
func TestAnAutoscalerThroughScale(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	r := startRedis(t)
	start(t, r.reader())
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	for i := range int32(50) {
		w.scaleWithRecord(r, hpa, "web", 3+i%7, false)
		w.writeStatus("web", int(i))
		if i == 25 {
			w.SetEnv(alice, "web", "DEBUG", "1")
		}
	}
	w.UntilIs("web", "Drifted: Added /spec/template/spec/containers/[name=app]/env by alice (Untrusted, WriterStamp) [autoscaler /spec/replicas]")
	b := w.Until("web", "the mask has the last value", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Masks) != 1 || b.Status.Masks[0].Value != fmt.Sprint(3+49%7) {
			return fmt.Errorf("masks are %+v", b.Status.Masks)
		}
		return nil
	})
	if b.Spec.Authorized.Number != 1 {
		t.Errorf("authorized is number %d: neither writer is trusted", b.Spec.Authorized.Number)
	}
	w.scaleWithRecord(r, bob, "web", 1, false)
	w.Until("web", "a person's value lifts the mask", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Masks) != 0 || len(b.Status.Findings) != 2 {
			return fmt.Errorf("it does not")
		}
		return nil
	})
}

func TestWithoutARecordTheWriterOfReplicasIsUnknown(t *testing.T) {
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Scale(alice, "web", 9)
	w.Until("web", "the replicas are drift by somebody unknown", func(b *v1alpha1.Baseline) error {
		if len(b.Status.Findings) != 1 || b.Status.Findings[0].Actor.Class != v1alpha1.ActorUnknown || b.Status.Findings[0].Path != "/spec/replicas" {
			return fmt.Errorf("they are not")
		}
		return nil
	})
}

func TestRedisDyingChangesNothingButNames(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	r := startRedis(t)
	start(t, r.reader())
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	r.Kill()
	w.SetImage(alice, "web", "registry.example/evil:1")
	w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
	w.SetImage(ci, "web", "registry.example/shop:2")
	w.Until("web", "a trusted write is authorized", func(b *v1alpha1.Baseline) error {
		if guarded.Authorized(b) != 2 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

// TestDeletionHasAnActor: records say who deleted; each of those who may retires
// the Baseline, anybody else leaves the object missing.
func TestDeletionHasAnActor(t *testing.T) {
	w := newWorld(t)
	r := startRedis(t)
	start(t, r.reader())
	w.UnderGuard()
	const (
		gc         = "system:serviceaccount:kube-system:generic-garbage-collector"
		namespaces = "system:serviceaccount:kube-system:namespace-controller"
	)
	tests := map[string]struct {
		user string
		want string
	}{
		"uninstalled by ci":          {user: ci, want: "retired"},
		"collected by the gc":        {user: gc, want: "retired"},
		"deleted with the namespace": {user: namespaces, want: "retired"},
		"deleted by a person":        {user: alice, want: "Missing: Removed object by alice (Untrusted, Admission)"},
		"deleted by the autoscaler":  {user: hpa, want: "Missing"},
	}
	i := 0
	for name, tc := range tests {
		i++
		object := fmt.Sprint("web-", i)
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			w.Deploy(ci, object)
			w.UntilIs(object, "InSync")
			r.record(recordOf(w.Live(object), specguard.OperationDelete, tc.user))
			w.Delete(tc.user, object)
			w.Until(object, tc.want, func(b *v1alpha1.Baseline) error {
				if tc.want == "retired" {
					if b.Status.RetirementTime == nil {
						return fmt.Errorf("it is not")
					}
					return nil
				}
				if b.Status.State != v1alpha1.StateMissing || b.Status.RetirementTime != nil || b.Status.Findings[0].Actor.User != tc.user {
					return fmt.Errorf("it is not")
				}
				return nil
			})
		})
	}
}

func TestARetiredBaselineIsRemovedAfterItsRetention(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	r := startRedis(t)
	start(t, r.reader(), withRetention(2*time.Second))
	w.UnderGuard()
	w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	r.record(recordOf(w.Live("web"), specguard.OperationDelete, ci))
	w.Delete(ci, "web")
	w.Eventually("the baseline is gone", func() error {
		_, err := w.Baseline("web")
		return isGone(err)
	})
}

// TestReplaceByForce is `kubectl replace --force` by CI: a DELETE and a CREATE.
func TestReplaceByForce(t *testing.T) {
	rotation.Share(t, 3)
	w := newWorld(t)
	start(t)
	w.UnderGuard()
	old := w.Deploy(ci, "web")
	w.UntilIs("web", "InSync")
	w.Delete(ci, "web")
	d := guarded.Deployment(w.namespace, "web")
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/shop:2"
	w.Must(w.As(ci).Create(w.Ctx(), d))
	w.Until("web", "the new object is authorized", func(b *v1alpha1.Baseline) error {
		if a := b.Spec.Authorized; b.Status.State != v1alpha1.StateInSync || a.UID == string(old.UID) || a.Number != 2 {
			return fmt.Errorf("authorized is %+v", a)
		}
		return nil
	})
}
