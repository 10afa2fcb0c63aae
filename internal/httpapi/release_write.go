// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

type releaseCreation struct {
	Idempotent
	Body wire.Release
}

func createRelease(ctx context.Context, s *server, in *releaseCreation) (*written[wire.Release], error) {
	if in.Body.Namespace == "" {
		return nil, invalidAt("body.namespace", "name the namespace of the Service")
	}
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	spec, err := in.Body.Spec()
	if err != nil {
		return nil, invalidAt("body", err.Error())
	}
	if err := signRelease(&spec, user); err != nil {
		return nil, err
	}
	uids, withheld, err := readUids(ctx, s.cluster, true)
	if err != nil {
		return nil, err
	}
	if err := checkEnvironment(&in.Body, uids, withheld); err != nil {
		return nil, err
	}
	key, err := in.of(user.Username, in.Body)
	if err != nil {
		return nil, err
	}
	r := &v1alpha1.ABRelease{ObjectMeta: metav1.ObjectMeta{Namespace: in.Body.Namespace, Name: in.Body.Name}, Spec: spec}
	if r, err = createOnce(ctx, s, key, &releases, r, wire.LocateRelease); err != nil {
		return nil, err
	}
	out, err := tagged(http.StatusCreated, wire.ReleaseOf(r, uids))
	if err == nil {
		out.Location = releasesPath + "/" + r.Namespace + "." + r.Name
	}
	return out, err
}

// signRelease names the caller as the author of a rollout, since the executor writes with the author's rights.
func signRelease(spec *v1alpha1.ABReleaseSpec, user authenticationv1.UserInfo) error {
	if spec.Rollout == nil {
		return nil
	}
	named := spec.Rollout.RequestedByGroups
	groups, err := actions.SelectGroups(user, named, len(named) > 0)
	if err != nil {
		return invalidAt("body.rollout.requestedByGroups", err.Error())
	}
	spec.Rollout.RequestedBy, spec.Rollout.RequestedByGroups = user.Username, groups
	return nil
}

// checkEnvironment compares the Environment that a request names with the one of the namespace.
func checkEnvironment(r *wire.Release, uids *wire.Uids, withheld error) error {
	within := InEnvironment{r.EnvironmentID}
	name := uids.EnvironmentOf[r.Namespace]
	switch {
	case r.EnvironmentID == "":
		return nil
	case withheld != nil:
		return withheld
	case name == "" || !within.keeps(name, uids):
		return invalidAt("body.environmentId", fmt.Sprintf("namespace %s is not in this Environment", r.Namespace))
	}
	return nil
}

// releaseVerb is what is asked of a release.
type releaseVerb struct {
	verb      v1alpha1.RolloutVerb
	stage     int32
	variation string
	reason    string
}

// askRelease asks something of a release in the name of the caller. The request follows from the release as
// it is read.
func askRelease(ctx context.Context, s *server, id string, w *Waiting, request func(*v1alpha1.ABRelease) (releaseVerb, error)) (*written[wire.Release], error) {
	user, err := s.whoami(ctx)
	if err != nil {
		return nil, err
	}
	r, uids, err := find(ctx, s, &releases, id)
	if err != nil {
		return nil, err
	}
	asked, err := request(r)
	if err != nil {
		return nil, err
	}
	control, err := actions.PlanReleaseVerb(r, asked.verb, asked.stage, asked.variation, user.Username, asked.reason)
	if err != nil {
		return nil, err
	}
	if err := actions.RequestReleaseVerb(ctx, s.cluster, r, control, false); err != nil {
		return nil, &requestError{verb: "patch", kind: releases.kind, namespace: r.Namespace, err: err, locate: wire.LocateVerb}
	}
	status, r, err := settle(ctx, s, w, r, func(ctx context.Context) (outcome[*v1alpha1.ABRelease], error) {
		progress, refusal, last, err := actions.AwaitReleaseVerb(ctx, s.cluster, r, control)
		return outcome[*v1alpha1.ABRelease]{progress, refusal, last}, err
	})
	if err != nil {
		return nil, err
	}
	return tagged(status, wire.ReleaseOf(r, uids))
}

type releaseRequest struct {
	Path
	Waiting
	Body *wire.ReasonRequest
}

// askPlainly makes the handler of a verb that has a reason alone.
func askPlainly(verb v1alpha1.RolloutVerb) func(context.Context, *server, *releaseRequest) (*written[wire.Release], error) {
	return func(ctx context.Context, s *server, in *releaseRequest) (*written[wire.Release], error) {
		return askRelease(ctx, s, in.ID, &in.Waiting, func(*v1alpha1.ABRelease) (releaseVerb, error) {
			return releaseVerb{verb: verb, reason: bodyOf(in.Body).Reason}, nil
		})
	}
}

type advanceRequest struct {
	Path
	Waiting
	Body *wire.AdvanceRequest
}

func advanceRelease(ctx context.Context, s *server, in *advanceRequest) (*written[wire.Release], error) {
	asked := bodyOf(in.Body)
	return askRelease(ctx, s, in.ID, &in.Waiting, func(r *v1alpha1.ABRelease) (releaseVerb, error) {
		verb := releaseVerb{verb: "Advance", reason: asked.Reason}
		if asked.StageNumber == nil {
			return verb, nil
		}
		verb.stage = *asked.StageNumber
		if in := r.Status.Rollout; in != nil && in.Run != nil && int(verb.stage) > len(in.Run.Stages) {
			return verb, invalidAt("body.stageNumber", fmt.Sprintf("run %d has %d stages", in.Run.Number, len(in.Run.Stages)))
		}
		return verb, nil
	})
}

type stageRequest struct {
	Path
	Waiting
	Body *wire.StageRequest
}

// askAtStage makes the handler of a verb about the stage that the caller has seen. The discovery server refuses one
// that is not under way any more.
func askAtStage(verb v1alpha1.RolloutVerb) func(context.Context, *server, *stageRequest) (*written[wire.Release], error) {
	return func(ctx context.Context, s *server, in *stageRequest) (*written[wire.Release], error) {
		seen := bodyOf(in.Body)
		return askRelease(ctx, s, in.ID, &in.Waiting, func(r *v1alpha1.ABRelease) (releaseVerb, error) {
			asked := releaseVerb{verb: verb, reason: seen.Reason}
			if seen.StageNumber != nil {
				asked.stage = *seen.StageNumber
			}
			if now := r.Status.Rollout; seen.RunNumber != nil && now != nil && now.Run != nil && now.Run.Number != *seen.RunNumber {
				return asked, wire.NewProblem(wire.Refused, fmt.Sprintf("run %d has taken the place of run %d", now.Run.Number, *seen.RunNumber))
			}
			return asked, nil
		})
	}
}

type pauseRequest struct {
	Path
}

// pauseRelease makes the handler that keeps a release from going forward, or lets the release go on.
func pauseRelease(pause v1alpha1.Toggle) func(context.Context, *server, *pauseRequest) (*written[wire.Release], error) {
	return func(ctx context.Context, s *server, in *pauseRequest) (*written[wire.Release], error) {
		if _, err := s.whoami(ctx); err != nil {
			return nil, err
		}
		r, uids, err := find(ctx, s, &releases, in.ID)
		if err != nil {
			return nil, err
		}
		if !actions.IsPauseAsWanted(r, pause) {
			if err := actions.RequestReleasePause(ctx, s.cluster, r, pause, false); err != nil {
				return nil, &requestError{verb: "patch", kind: releases.kind, namespace: r.Namespace, err: err, locate: wire.LocateVerb}
			}
		}
		return tagged(http.StatusOK, wire.ReleaseOf(r, uids))
	}
}

type promoteRequest struct {
	Path
	Waiting
	Body wire.PromoteRequest
}

func promoteRelease(ctx context.Context, s *server, in *promoteRequest) (*written[wire.Release], error) {
	return askRelease(ctx, s, in.ID, &in.Waiting, func(r *v1alpha1.ABRelease) (releaseVerb, error) {
		name, found := wire.VariationOf(&r.Spec, in.Body.Variation)
		if !found {
			return releaseVerb{}, invalidAt("body.variation", fmt.Sprintf("the release has no variation %s", in.Body.Variation))
		}
		return releaseVerb{verb: "Promote", variation: string(name), reason: in.Body.Reason}, nil
	})
}
