// SPDX-License-Identifier: Apache-2.0

package pages

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/plumbline-dev/plumbline/internal/actions/progress"
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readReleases(r *reader) (view.Page, error) {
	namespace, err := r.namespace()
	if err != nil {
		return view.Page{}, err
	}
	all, err := list[v1alpha1.ABRelease](r, "ABRelease", namespace, newReleases)
	if err != nil {
		return view.Page{}, err
	}
	return view.ReleasesOf(all, namespace, r.Now()), nil
}

func readRelease(r *reader) (view.Page, error) {
	in, err := r.release()
	if err != nil {
		return view.Page{}, err
	}
	return view.ReleaseOf(in), nil
}

func readApproval(r *reader) (view.Page, error) {
	in, err := r.release()
	if err != nil {
		return view.Page{}, err
	}
	return view.ApprovalOf(in), nil
}

func readPromotion(r *reader) (view.Page, error) {
	in, err := r.release()
	if err != nil {
		return view.Page{}, err
	}
	return view.PromotionOf(in, r.value("variation")), nil
}

// release reads the release that the path names, with its strategy, and its last hour once it has had a run.
func (r *reader) release() (*view.Release, error) {
	release, err := get(r, "ABRelease", &v1alpha1.ABRelease{})
	if err != nil {
		return nil, err
	}
	in := &progress.Question{Release: release}
	if rollout := release.Spec.Rollout; rollout != nil && rollout.StrategyName != "" {
		strategy, err := httpapi.ReadOne(r, r.Cluster, "RolloutStrategy", &v1alpha1.RolloutStrategy{}, "", rollout.StrategyName)
		switch {
		case err == nil:
			in.Strategy = &strategy.Spec
		case !apierrors.IsNotFound(err):
			in.StrategyUnread = r.sentenceOf(err)
		}
	}
	shown := &view.Release{Question: in}
	if release.Spec.HasRequests() && release.Status.Rollout != nil && release.Status.Rollout.Run != nil {
		if shown.Hour, err = httpapi.ReadHour(r, r.Cluster, release); err != nil {
			shown.HourUnread = r.sentenceOf(err)
		}
	}
	in.Now = r.Now()
	return shown, nil
}
