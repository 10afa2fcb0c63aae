// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
)

// revisionInput is the number of the revision that a rollback leads to.
const revisionInput = "revisionNumber"

// planVerbs are the forms of the page of a plan.
func planVerbs() []verb {
	return []verb{
		reasoned("execute", "execute the plan", "/remediation/plans"), reasoned("pause", "pause the plan", "/remediation/plans"),
		reasoned("resume", "resume the plan", "/remediation/plans"), reasoned("cancel", "cancel the plan", "/remediation/plans"),
	}
}

// objectVerbs are the forms of the page of an object, and that of its preview.
func objectVerbs() []verb {
	return []verb{
		{name: "accept", sent: "accept the observed state", inputs: []string{"hash", "reason"}, request: func(r *reader, key client.ObjectKey) (*request, error) {
			return post(operationOf("/baselines", key, "accept"), wire.AcceptRequest{ReasonRequest: reasonOf(r), Hash: r.value("hash")}), nil
		}},
		plain("check", "check the object", "/baselines"),
		{name: "lift", sent: "end the quarantine", inputs: []string{"token", "reason"}, request: func(r *reader, key client.ObjectKey) (*request, error) {
			return post(operationOf("/baselines", key, "lift"), wire.LiftRequest{ReasonRequest: reasonOf(r), Token: r.value("token")}), nil
		}},
		{
			name: "remediate", sent: "remediate the object", inputs: []string{"policy", revisionInput, "reason"}, asks: readRemediation, queries: []string{"policy", revisionInput},
			request: func(r *reader, key client.ObjectKey) (*request, error) {
				revision, err := numberOf[int64](r, revisionInput)
				body := wire.ExecuteRequest{ReasonRequest: reasonOf(r), PolicyID: r.value("policy"), Targets: []string{idOf(key)}, RevisionNumber: revision}
				return post("/remediation/execute", body), err
			},
		},
	}
}

// policyVerbs are the forms of the page of a policy, and that of its activation.
func policyVerbs() []verb {
	return []verb{
		{
			name: "activate", sent: "activate the policy", inputs: []string{versionInput, "choose", "reason"}, several: []string{"groups"}, asks: readActivation,
			request: func(r *reader, key client.ObjectKey) (*request, error) {
				body := wire.ActivateRequest{ReasonRequest: reasonOf(r)}
				if r.values.Has("choose") { // no chosen group is none, and not each
					groups := append([]string{}, r.values["groups"]...)
					body.Groups = &groups
				}
				asked := post(operationOf("/remediation/policies", key, "activate"), body)
				asked.headers = map[string]string{"If-Match": r.value(versionInput)}
				return asked, nil
			},
		},
		reasoned("deactivate", "deactivate the policy", "/remediation/policies"), reasoned("halt", "halt the policy", "/remediation/policies"),
		editVerb(),
	}
}

// releaseVerbs are the forms of the page of a release, and those of the pages that ask again.
func releaseVerbs() []verb {
	const collection = "/ab-releases"
	return []verb{
		reasoned("start", "start the run", collection), reasoned("rollback", "roll the release back", collection),
		{name: "advance", sent: "advance the run", inputs: []string{"stageNumber", "reason"}, request: func(r *reader, key client.ObjectKey) (*request, error) {
			stage, err := numberOf[int32](r, "stageNumber")
			return post(operationOf(collection, key, "advance"), wire.AdvanceRequest{ReasonRequest: reasonOf(r), StageNumber: stage}), err
		}},
		atStage("approve", "approve the stage", readApproval), atStage("skip", "skip the stage", nil),
		reasoned("retry", "try the run again", collection), plain("pause", "pause the run", collection), plain("resume", "let the run go on", collection),
		{
			name: "promote", sent: "promote the variation", inputs: []string{"variation", "reason"}, asks: readPromotion, queries: []string{"variation"},
			request: func(r *reader, key client.ObjectKey) (*request, error) {
				return post(operationOf(collection, key, "promote"), wire.PromoteRequest{ReasonRequest: reasonOf(r), Variation: r.value("variation")}), nil
			},
		},
	}
}

// atStage is a verb about the run and the stage of a release that the page has shown.
func atStage(name, sent string, asks func(*reader) (view.Page, error)) verb {
	return verb{
		name: name, sent: sent, inputs: []string{"runNumber", "stageNumber", "reason"}, asks: asks,
		request: func(r *reader, key client.ObjectKey) (*request, error) {
			run, err := numberOf[int64](r, "runNumber")
			if err != nil {
				return nil, err
			}
			stage, err := numberOf[int32](r, "stageNumber")
			body := wire.StageRequest{ReasonRequest: reasonOf(r), RunNumber: run, StageNumber: stage}
			return post(operationOf("/ab-releases", key, name), body), err
		},
	}
}

// ledgerVerbs are the forms of the page of a ledger.
func ledgerVerbs() []verb {
	const collection = "/remediation/ledgers"
	return []verb{
		{name: "halt", sent: "halt remediation", inputs: []string{"reason"}, request: func(r *reader, key client.ObjectKey) (*request, error) {
			return post(operationOf(collection, key, "halt"), wire.HaltRequest{Reason: r.value("reason")}), nil
		}},
		plain("unhalt", "let remediation go on", collection),
	}
}

// numberOf reads a number of a form; nil for one that is left out.
func numberOf[N int32 | int64](r *reader, name string) (*N, error) {
	value := r.value(name)
	if value == "" {
		return nil, nil //nolint:nilnil // a number that is left out
	}
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return nil, wire.NewProblem(wire.Invalid, "", wire.FieldError{Location: "body." + name, Message: "it is no number"})
	}
	n := N(number)
	return &n, nil
}

// reasoned is a verb with a reason alone, of an object in a collection of the API.
func reasoned(name, sent, collection string) verb {
	return verb{name: name, sent: sent, inputs: []string{"reason"}, request: func(r *reader, key client.ObjectKey) (*request, error) {
		return post(operationOf(collection, key, name), reasonOf(r)), nil
	}}
}

// plain is a verb without a reason: the API keeps none for it.
func plain(name, sent, collection string) verb {
	return verb{name: name, sent: sent, request: func(_ *reader, key client.ObjectKey) (*request, error) {
		return post(operationOf(collection, key, name), nil), nil
	}}
}

// operationOf is the path of an operation about an object. The names are those of Kubernetes, which need no
// escape.
func operationOf(collection string, key client.ObjectKey, name string) string {
	return collection + "/" + idOf(key) + "/" + name
}

// idOf names an object as the API does.
func idOf(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.Namespace + "." + key.Name
}

func reasonOf(r *reader) wire.ReasonRequest {
	return wire.ReasonRequest{Reason: r.value("reason")}
}
