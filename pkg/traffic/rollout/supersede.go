// SPDX-License-Identifier: Apache-2.0

package rollout

import "slices"

// Supersede says what becomes of a run when a variation gets another revision in the middle of it.
type Supersede string

// The policies. A revision that reaches the workload all the same supersedes the run with either of them.
const (
	// SupersedeRestart begins the next run with it.
	SupersedeRestart Supersede = "Restart"
	// SupersedeReject has the API server refuse it, by a policy of the chart.
	SupersedeReject Supersede = "Reject"
)

// Bounds of the images that a run stores.
const (
	maxImages = 12
	maxImage  = 384
)

// ImageOf returns what a container runs, as the policy of the API server compares it.
func ImageOf(container, image string) string { return container + "=" + image }

// learnImages stores the images of the active variation while the API server refuses other revisions: a change
// that returns to these images passes. The images stay while the spec cannot be carried out.
func (m *machine) learnImages() {
	if !m.next.IsOn() || m.Plan == nil {
		return
	}
	run := m.next.Run
	if m.Plan.Supersede != SupersedeReject {
		run.ActiveImages = nil
		return
	}
	if active, is := m.arm(run.Active); is && active.Revision.Is(run.From) {
		run.ActiveImages = boundImages(active.Images)
	}
}

// boundImages returns sorted images; nil if they are too many or too long, so that none is missing.
func boundImages(images []string) []string {
	isLong := func(image string) bool { return len(image) > maxImage }
	if len(images) == 0 || len(images) > maxImages || slices.ContainsFunc(images, isLong) {
		return nil
	}
	return slices.Sorted(slices.Values(images))
}
