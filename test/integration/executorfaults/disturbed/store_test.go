// SPDX-License-Identifier: Apache-2.0

//go:build integration

package disturbed

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/failpoint"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestNoRecordsNoIntents takes the directory of the records away while a plan is
// under way, and brings it back.
func TestNoRecordsNoIntents(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	tests := map[string]struct {
		begin         func(t *testing.T, directory string)
		breaks, mends func(directory string) error
	}{
		"the directory is gone": {func(*testing.T, string) {}, hide, show},
		"the volume is full":    {volume, fill, empty},
		// As the kernel makes it when the disk below has failed.
		"the volume is read-only": {volume, protect, unprotect},
	}
	worlds := shared.MakeWorlds(t, 2*len(tests))
	next := 0
	for name, tc := range tests {
		t.Run(name+" before the intent", func(t *testing.T) {
			w, f := worlds[next].Within(t), failpoint.NewFiles(t)
			next++
			defer w.Forget()
			tc.begin(t, f.RecordsDirectory())
			plan := w.MakePlan()
			// An answer of the store counts for a minute, which this test does not wait.
			e := shared.Start(t, f, "stop:after:"+failpoint.Claimed+";probe:1ms")
			e.UntilStopped()
			w.Must(tc.breaks(f.RecordsDirectory()))
			e.GoOn()
			p := w.UntilPlan(plan, "it waits for the store", func(p *v1alpha1.RemediationPlan) bool {
				return strings.Contains(p.Status.DeferralReason, "evidence cannot be written")
			})
			t.Logf("it waits: %s", p.Status.DeferralReason)
			if n := w.CountEffects("web"); n != 0 || p.Status.Steps[0].State != v1alpha1.StepPlanned {
				t.Errorf("%d writes, step 0 is %s", n, p.Status.Steps[0].State)
			}
			// D16 of the review of remediation: a plan that waits keeps others from nothing.
			if held := w.Held(p); len(held) > 0 {
				t.Errorf("while it waits, %s", strings.Join(held, ", "))
			}
			w.Must(tc.mends(f.RecordsDirectory()))
			w.UntilSucceeded(plan, f)
		})
		t.Run(name+" after the effect", func(t *testing.T) {
			w, f := worlds[next].Within(t), failpoint.NewFiles(t)
			next++
			defer w.Forget()
			tc.begin(t, f.RecordsDirectory())
			plan := w.MakePlan()
			e := shared.Start(t, f, "stop:after:"+failpoint.Effect)
			e.UntilStopped()
			w.Must(tc.breaks(f.RecordsDirectory()))
			e.GoOn()
			w.UntilPlan(plan, "the ledgers know of the step", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.Steps[0].Settled == v1alpha1.Enabled
			})
			w.Must(tc.mends(f.RecordsDirectory()))
			w.UntilSucceeded(plan, f)
		})
	}
}

// TestAnExecutorKilledWhileItsStoreIsOut takes the store away while a plan is at a write, and kills the executor
// and the next one. The third one finds the store again.
func TestAnExecutorKilledWhileItsStoreIsOut(t *testing.T) {
	failpoint.SkipUnlessLong(t)
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	// A plan that was granted nothing yet cannot say that it waits, since that is a decision.
	waits := func(p *v1alpha1.RemediationPlan) bool {
		return strings.HasPrefix(p.Status.DeferralReason, "the decision cannot be recorded: ")
	}
	told := func(p *v1alpha1.RemediationPlan) bool { return p.Status.Steps[0].Settled == v1alpha1.Enabled }
	writes := map[string]func(*v1alpha1.RemediationPlan) bool{failpoint.Claimed: waits, failpoint.Effect: told, failpoint.Applied: told}
	worlds := shared.MakeWorlds(t, len(writes))
	next := 0
	for write, goesOnUntil := range writes {
		t.Run("after "+write, func(t *testing.T) {
			w, f := worlds[next].Within(t), failpoint.NewFiles(t)
			next++
			defer w.Forget()
			volume(t, f.RecordsDirectory())
			plan := w.MakePlan()
			first := shared.Start(t, f, "stop:after:"+write)
			first.UntilStopped()
			w.Must(protect(f.RecordsDirectory()))
			w.Must(first.Kill())
			second := shared.Start(t, f, "probe:1ms")
			w.UntilPlan(plan, "the next executor has gone on as far as it may", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.Epoch == 2 && goesOnUntil(p)
			})
			w.Must(second.Kill())
			if held := w.Held(plan); write == failpoint.Claimed && len(held) > 0 {
				t.Errorf("while it waits, %s", strings.Join(held, ", "))
			}
			if n := w.CountEffects("api"); n != 0 {
				t.Errorf("the next step was written %d times without a store", n)
			}
			w.Must(unprotect(f.RecordsDirectory()))
			shared.Start(t, f, "")
			w.UntilWell(plan, f)
			if n := w.CountEffects("web"); n != 1 {
				t.Errorf("%d writes of web were stored", n)
			}
		})
	}
}

// TestAPlanWithoutRecordsDoesNotBegin has no store from the start.
func TestAPlanWithoutRecordsDoesNotBegin(t *testing.T) {
	shared.StartAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.MakeWorlds(t, 1)[0], failpoint.NewFiles(t)
	defer w.Forget()
	e := shared.Start(t, f, "")
	w.UntilReady(e)
	w.Must(hide(f.RecordsDirectory()))
	plan := w.MakePlan()
	e.UntilWrite("body 1") // the first content that goes before record 1
	p := &v1alpha1.RemediationPlan{}
	w.Eventually("the plan says why it does not begin", func() error {
		w.Must(shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(plan), p))
		if !strings.HasPrefix(p.Status.DeferralReason, "the decision cannot be recorded: ") {
			return fmt.Errorf("it waits for %q", p.Status.DeferralReason)
		}
		return nil
	})
	if p.Status.Phase != "" || w.CountEffects("web") != 0 {
		t.Errorf("the plan is %s", remediation.Describe(p))
	}
	w.Must(show(f.RecordsDirectory()))
	w.UntilSucceeded(plan, f)
}

// hide takes the directory away, as a volume that is not mounted is; show brings it back.
func hide(directory string) error { return os.Rename(directory, directory+".away") }
func show(directory string) error { return os.Rename(directory+".away", directory) }

// volume puts the records on a file system of 64 KiB.
func volume(t *testing.T, directory string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a volume that can be full needs the right to mount one: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(directory, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			t.Errorf("unmounting %s: %v", directory, err)
		}
	})
}

// protect lets nobody write the volume, the superuser included; unprotect ends that.
func protect(directory string) error {
	return syscall.Mount("", directory, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}
func unprotect(directory string) error {
	return syscall.Mount("", directory, "", syscall.MS_REMOUNT, "")
}

func ballast(directory string) string { return directory + "/.tmp-ballast" }

// fill uses up the volume; empty makes room again.
func fill(directory string) error {
	file, err := os.Create(ballast(directory))
	if err != nil {
		return err
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func empty(directory string) error { return os.Remove(ballast(directory)) }
