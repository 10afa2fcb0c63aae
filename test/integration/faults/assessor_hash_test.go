// SPDX-License-Identifier: Apache-2.0

//go:build integration

package faults

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// asOfAnother is what another version of the assessor with another hash leaves
// behind: each hash of the Baselines is one of its own. Nothing else differs,
// since the bodies are the same.
func (w *world) asOfAnother(version string, names ...string) {
	w.t.Helper()
	as, err := apiserver.As(w.c.Config, assessorUser)
	w.Must(err)
	other := func(hash string) string {
		if hash == "" || !strings.Contains(hash, ":") {
			return hash // "absent" is no hash
		}
		_, rest, _ := strings.Cut(hash, ":")
		// The same digits as with pl1 would be another hash by the prefix alone.
		return version + ":" + strings.Map(func(r rune) rune {
			if r >= '0' && r <= '8' {
				return r + 1
			}
			return r
		}, rest)
	}
	for _, name := range names {
		b, err := w.Baseline(name)
		w.Must(err)
		b.Spec.Authorized.Hash = other(b.Spec.Authorized.Hash)
		status := b.Status
		w.Must(as.Update(w.Ctx(), b))
		b.Status = status
		b.Status.ObservedGeneration = b.Generation
		b.Status.Observed.Hash = other(b.Status.Observed.Hash)
		b.Status.Observed.FullHash = other(b.Status.Observed.FullHash)
		w.Must(as.Status().Update(w.Ctx(), b))
	}
}

// TestAnotherVersionOfTheHashAndBackFindsNothing runs the version between by
// what it stores: an assessor meets hashes of a version that it does not know,
// after an update and after going back.
func TestAnotherVersionOfTheHashAndBackFindsNothing(t *testing.T) {
	w := shared.newWorld(t)
	h, stop := w.record()
	p := w.assessor("")
	w.UnderGuard()
	names := []string{"quiet", "drifted", "released", "drifts"}
	for _, name := range names {
		w.Deploy(ci, name)
		w.untilAuthorized(name, 1)
	}
	w.SetImage(alice, "drifted", evilImage)
	before := w.UntilIs("drifted", evil)
	w.Eventually("it is told", func() error {
		if len(w.events("Deployment", "drifted", "DriftDetected")) == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	for _, version := range []string{"pl2", "pl0"} {
		w.Must(p.Stop())
		w.asOfAnother(version, names...)
		p = w.assessor("")
		for _, name := range names {
			reading := inSync
			if name == "drifted" {
				reading = evil
			}
			w.Until(name, fmt.Sprintf("%s has hashes of this version after %s, and reads %q", name, version, reading), func(b *v1alpha1.Baseline) error {
				for _, hash := range []string{b.Spec.Authorized.Hash, b.Status.Observed.Hash, b.Status.Observed.FullHash} {
					if canon.Hash(hash).Algorithm() != canon.PL1 {
						return fmt.Errorf("%s is of another version", hash)
					}
				}
				if n := guarded.Authorized(b); n != 1 {
					return fmt.Errorf("authorized is number %d", n)
				}
				return guarded.Reads(reading)(b)
			})
		}
	}
	// While nobody watched, with hashes of another version between.
	w.Must(p.Stop())
	w.SetImage(ci, "released", "registry.example/shop:2")
	w.SetImage(alice, "drifts", evilImage)
	w.asOfAnother("pl2", names...)
	p = w.assessor("")
	w.untilAuthorized("released", 2)
	w.UntilIs("drifts", evil)
	after := w.UntilIs("drifted", evil)
	if !after.Status.Findings[0].FirstSeenTime.Equal(&before.Status.Findings[0].FirstSeenTime) {
		t.Error("the drift was forgotten and found anew")
	}
	w.alive(p)
	stop()
	h.only("quiet", inSync)
	h.only("released", inSync)
	h.only("drifted", inSync, evil)
	h.only("drifts", inSync, evil)
	// An Event is posted after the status, and none goes away.
	w.Eventually("each drift is told once", func() error {
		for name, want := range map[string]int{"quiet": 0, "released": 0, "drifted": 1, "drifts": 1} {
			if n := len(w.events("Deployment", name, "DriftDetected")); n != want {
				return fmt.Errorf("%d events DriftDetected of %s, want %d", n, name, want)
			}
		}
		return nil
	})
}
