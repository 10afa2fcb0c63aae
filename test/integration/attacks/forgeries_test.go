// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard"
)

// S1: once the true record has named who deleted, one that comes later excuses
// nobody.
func TestAForgedRecordThatComesAfterTheTrueOneExcusesNobodyWhoDeletes(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	p.deploy("afterwards")
	before := p.live("web")
	p.must(as(t, mallory).Delete(t.Context(), p.named("web")))
	p.untilIs("web", fmt.Sprintf(deletedBy, known))
	forgery{user: ci, operation: admissionv1.Delete, before: before}.send(t)
	p.recorded(ci, specguard.OperationDelete, 1)
	p.settledRecords("afterwards")
	p.witness()
	p.untilIs("web", fmt.Sprintf(deletedBy, known))
}

// S1: one review has 7 MiB of room for a name. Such a record is dropped and
// counted, so that forty of them neither fill the webhook's memory nor stand in
// the stream, where no reader would get past them.
func TestForgedReviewsWithEndlessNamesAreCountedAndCostNoRecord(t *testing.T) {
	const reviews = 40
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	p.deploy("afterwards")
	dropped := p.metric("plumbline_admission_records_dropped_total", `reason="oversized"`)
	after := p.live("web")
	after.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	forged := forgery{user: strings.Repeat("u", 6<<20), operation: admissionv1.Update, before: p.live("web"), after: after}
	for range reviews {
		forged.send(t)
	}
	if n := p.metric("plumbline_admission_records_dropped_total", `reason="oversized"`) - dropped; n != reviews {
		t.Errorf("%v of %d are counted as dropped", n, reviews)
	}
	p.settledRecords("afterwards")
	p.untilIs("web", "InSync")
}
