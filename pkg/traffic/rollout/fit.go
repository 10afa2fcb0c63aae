// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// MaxStatus is how many bytes of JSON the status of a release takes at most. Each watcher of the release
// gets the whole status at each change.
const MaxStatus = 50 << 10

// fits are the bounds of text for people, from wide to narrow: the bytes of each text, the lines of
// the history, the stages with health, and the proxies that are named.
var fits = []struct{ text, lines, stages, proxies int }{
	{256, MaxHistory, MaxStages, 10}, {256, 32, MaxStages, 10}, {128, 32, 8, 10}, {128, 16, 8, 5}, {64, 16, 4, 5}, {64, 8, 1, 2}, {32, 2, 0, 0}, {16, 1, 0, 0},
}

// Fit shortens the text for people until the status has at most [MaxStatus] bytes of JSON: messages, the
// oldest lines of the history, the health of the oldest stages, the groups, the names of proxies, and last the
// images of the active variation. Each fact that a decision reads stays as it is. An error says that the rest is
// larger; the status is then as short as Fit can make it.
func Fit(status *v1alpha1.ABReleaseStatus) error {
	n, err := sizeOf(status)
	for _, to := range fits {
		if err != nil || n <= MaxStatus {
			break
		}
		shortenTexts(status, to.text)
		if a := status.Acknowledged; a != nil {
			a.OutOfSync, a.Gone = a.OutOfSync[:min(len(a.OutOfSync), to.proxies)], a.Gone[:min(len(a.Gone), to.proxies)]
		}
		if in := status.Rollout; in != nil {
			in.History = in.History[max(0, len(in.History)-to.lines):]
			if in.Run != nil && to.lines < 8 { // the API server then refuses a change back as any other
				in.Run.ActiveImages = nil
			}
			if to.stages == 0 {
				in.Groups = nil
			}
			if a := in.Analysis; a != nil {
				a.Stages = a.Stages[max(0, len(a.Stages)-to.stages):]
			}
		}
		n, err = sizeOf(status)
	}
	if err == nil && n > MaxStatus {
		err = fmt.Errorf("shortening the status of a release: %d bytes are left, want at most %d", n, MaxStatus)
	}
	return err
}

func sizeOf(status *v1alpha1.ABReleaseStatus) (int, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return 0, fmt.Errorf("measuring the status of a release: %w", err)
	}
	return len(data), nil
}

// shortenTexts cuts each text that no decision reads.
func shortenTexts(status *v1alpha1.ABReleaseStatus, most int) {
	cut := func(texts ...*string) {
		for _, text := range texts {
			*text = shorten(*text, most)
		}
	}
	for i := range status.Conditions {
		cut(&status.Conditions[i].Message)
	}
	if a := status.Acknowledged; a != nil {
		for _, proxies := range [][]v1alpha1.OutOfSyncProxy{a.OutOfSync, a.Gone} {
			for i := range proxies {
				cut(&proxies[i].Why)
			}
		}
	}
	for i := range status.Routers {
		cut(&status.Routers[i].LastEditor)
	}
	in := status.Rollout
	if in == nil {
		return
	}
	shortenRun(in, cut)
	if in.Waiting != nil {
		cut(&in.Waiting.Message)
	}
	if in.Handled != nil {
		cut(&in.Handled.Refusal)
	}
	if a := in.Analysis; a != nil {
		cut(&a.Message)
	}
	for i := range in.Gates {
		cut(&in.Gates[i].Message)
	}
	for i := range in.Seen {
		cut(&in.Seen[i].Image)
	}
	for i := range in.Rejected {
		cut(&in.Rejected[i].Image)
	}
	for i := range in.History {
		cut(&in.History[i].Message)
	}
}

// shortenRun cuts the texts of the run and of its works.
func shortenRun(in *v1alpha1.RolloutStatus, cut func(...*string)) {
	for i := range in.Works {
		w := &in.Works[i]
		if cut(&w.Message); WorkPhase(w.Phase).settled() { // no one asks for it again
			w.ExpectedHash = ""
		}
	}
	run := in.Run
	if run == nil {
		return
	}
	cut(&run.Message, &run.From.Image, &run.To.Image)
	for i := range run.Stages {
		cut(&run.Stages[i].Message, &run.Stages[i].ApprovedBy)
	}
	if run.FreshControl != nil {
		cut(&run.FreshControl.Message)
	}
	if run.Clone != nil && run.Clone.Changed != nil {
		cut(&run.Clone.Changed.Image)
	}
}
