// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// S12: two with names that move the cursor, end a line and turn text around fight
// over an image. What conditions say of them is one readable line; the names
// themselves stay what they are, for whoever compares them.
func TestConditionsTellOfOddNamesInOneReadableLine(t *testing.T) {
	const (
		first  = "eve\x1b[2J\r\nReady: True\u202ecila\u2066"
		second = "bob\u200b\u009b31m\u2028\ufeff"
	)
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	_, eve := somebody(t, first, roots)
	_, bob := somebody(t, second, roots)
	for range 2 {
		p.setImage(eve, "web", "registry.example/evil:1")
		p.untilIs("web", "Drifted: Changed "+imagePath+" by "+first+" (Untrusted, WriterStamp)")
		p.setImage(bob, "web", "registry.example/evil:2")
		p.untilIs("web", "Drifted: Changed "+imagePath+" by "+second+" (Untrusted, WriterStamp)")
	}
	var b *v1alpha1.Baseline
	p.eventually("the fight is told", func() (err error) {
		if b, err = p.baseline("web"); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.ConditionDegraded) {
			return fmt.Errorf("the conditions are %+v", b.Status.Conditions)
		}
		return nil
	})
	for i := range b.Status.Conditions {
		if c := &b.Status.Conditions[i]; strings.ContainsFunc(c.Message, func(r rune) bool { return unsafe(r) || r == '\n' }) {
			t.Errorf("%s says %q", c.Type, c.Message)
		}
	}
	for kind, name := range map[string]string{v1alpha1.ConditionReady: second, v1alpha1.ConditionDegraded: first} {
		if c := meta.FindStatusCondition(b.Status.Conditions, kind); c == nil || !strings.Contains(c.Message, diff.Printable(name)) {
			t.Errorf("%s does not name %q: %+v", kind, name, c)
		}
	}
	p.printsSafely("deployment/web", "status", "blame")
	p.tellsSafely()
}
