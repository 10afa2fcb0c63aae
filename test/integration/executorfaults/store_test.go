// SPDX-License-Identifier: Apache-2.0

//go:build integration

package executorfaults

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// TestNoRecordsNoIntents takes the directory of the records away while a plan is
// under way, and brings it back.
func TestNoRecordsNoIntents(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	tests := map[string]struct {
		begin         func(*files)
		breaks, mends func(*files) error
	}{
		"the directory is gone": {func(*files) {}, (*files).hide, (*files).show},
		"the volume is full":    {(*files).volume, (*files).fill, (*files).empty},
		// As the kernel makes it when the disk below has failed.
		"the volume is read-only": {(*files).volume, (*files).protect, (*files).unprotect},
	}
	worlds := shared.prepared(t, 2*len(tests))
	next := 0
	for name, tc := range tests {
		t.Run(name+" before the intent", func(t *testing.T) {
			w, f := worlds[next].Within(t), newFiles(t)
			next++
			defer w.Forget()
			tc.begin(f)
			plan := w.planned()
			e := shared.start(t, f, "stop:after:"+reserved)
			e.stopped()
			w.Must(tc.breaks(f))
			e.goesOn()
			p := w.UntilPlan(plan, "it waits for the store", func(p *v1alpha1.RemediationPlan) bool {
				return strings.Contains(p.Status.DeferralReason, "evidence cannot be written")
			})
			t.Logf("it waits: %s", p.Status.DeferralReason)
			if n := w.effects("web"); n != 0 || p.Status.Steps[0].State != v1alpha1.StepReserved {
				t.Errorf("%d writes, step 0 is %s", n, p.Status.Steps[0].State)
			}
			w.Must(tc.mends(f))
			w.succeeded(plan, f)
		})
		t.Run(name+" after the effect", func(t *testing.T) {
			w, f := worlds[next].Within(t), newFiles(t)
			next++
			defer w.Forget()
			tc.begin(f)
			plan := w.planned()
			e := shared.start(t, f, "stop:after:"+effect)
			e.stopped()
			w.Must(tc.breaks(f))
			e.goesOn()
			w.UntilPlan(plan, "the ledgers know of the step", func(p *v1alpha1.RemediationPlan) bool {
				return p.Status.Steps[0].Settled == v1alpha1.Enabled
			})
			w.Must(tc.mends(f))
			w.succeeded(plan, f)
		})
	}
}

// TestAPlanWithoutRecordsDoesNotBegin has no store from the start.
func TestAPlanWithoutRecordsDoesNotBegin(t *testing.T) {
	shared.startAssessor(t)
	remediation.Rollouts(t, shared.Config)
	w, f := shared.prepared(t, 1)[0], newFiles(t)
	defer w.Forget()
	e := shared.start(t, f, "")
	w.ready(e)
	w.Must(f.hide())
	plan := w.planned()
	e.until("record 1")
	p := &v1alpha1.RemediationPlan{}
	w.Eventually("the plan says why it does not begin", func() error {
		w.Must(shared.Admin.Get(t.Context(), client.ObjectKeyFromObject(plan), p))
		if !strings.HasPrefix(p.Status.DeferralReason, "what was decided cannot be recorded: ") {
			return fmt.Errorf("it waits for %q", p.Status.DeferralReason)
		}
		return nil
	})
	if p.Status.Phase != "" || w.effects("web") != 0 {
		t.Errorf("the plan is %s", remediation.Describe(p))
	}
	w.Must(f.show())
	w.succeeded(plan, f)
}

// hide takes the directory away, as a volume that is not mounted is; show brings it back.
func (f *files) hide() error { return os.Rename(f.records(), f.records()+".away") }
func (f *files) show() error { return os.Rename(f.records()+".away", f.records()) }

// volume puts the records on a file system of 64 KiB.
func (f *files) volume() {
	f.t.Helper()
	directory := f.records()
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, "size=64k"); err != nil {
		f.t.Skipf("a volume that can be full needs the right to mount one: %v", err)
	}
	f.t.Cleanup(func() {
		if err := syscall.Unmount(directory, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			f.t.Errorf("unmounting %s: %v", directory, err)
		}
	})
}

// protect lets nobody write the volume, the superuser included; unprotect ends that.
func (f *files) protect() error {
	return syscall.Mount("", f.records(), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}
func (f *files) unprotect() error { return syscall.Mount("", f.records(), "", syscall.MS_REMOUNT, "") }

func (f *files) ballast() string { return f.records() + "/.tmp-ballast" }

// fill uses up the volume; empty makes room again.
func (f *files) fill() error {
	file, err := os.Create(f.ballast())
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

func (f *files) empty() error { return os.Remove(f.ballast()) }
