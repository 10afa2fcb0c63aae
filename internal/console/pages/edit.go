// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/internal/httpapi"
	"github.com/plumbline-dev/plumbline/internal/httpapi/wire"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The inputs of the form beside the fields.
const (
	versionInput   = "version"
	shownInput     = "shown"
	confirmedInput = "confirmed"
)

// editInputs are those of the form beside the fields.
var editInputs = []string{versionInput, shownInput, confirmedInput}

// editVerb replaces a policy, after a dry run and a look at the changes.
func editVerb() verb {
	v := verb{name: "edit", sent: "save the policy", inputs: slices.Clone(editInputs), asks: readEdit, hasValues: true, request: replacementOf}
	for i := range view.PolicyFields {
		if f := &view.PolicyFields[i]; f.IsSeveral {
			v.several = append(v.several, f.Name)
		} else {
			v.inputs = append(v.inputs, f.Name)
		}
	}
	return v
}

// replacementOf is the request to replace the policy by one with the values of the form. It is a try until the
// caller has seen the changes.
func replacementOf(r *reader, key client.ObjectKey) (*request, error) {
	p, err := get(r, "RemediationPolicy", &v1alpha1.RemediationPolicy{})
	if err != nil {
		return nil, err
	}
	body, err := policyBody(p)
	if err != nil {
		return nil, err
	}
	applyFields(body, r.values)
	asked := &request{
		method: http.MethodPut, path: httpapi.Prefix + "/remediation/policies/" + idOf(key), body: body,
		headers: map[string]string{"If-Match": r.value(versionInput)}, isTry: r.value(confirmedInput) == "",
	}
	if asked.isTry {
		asked.path += "?dryRun=true"
	}
	return asked, nil
}

// policyBody is a policy as the REST API has it, without the ids that others give.
func policyBody(p *v1alpha1.RemediationPolicy) (map[string]any, error) {
	raw, err := json.Marshal(wire.PolicyOf(p, &wire.Uids{}))
	if err != nil {
		return nil, fmt.Errorf("encoding a policy: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	body := map[string]any{}
	if err := decoder.Decode(&body); err != nil {
		return nil, fmt.Errorf("decoding a policy: %w", err)
	}
	return body, nil
}

// applyFields gives a policy the values that the caller has changed in a form. An empty value stands for the
// default. A number that is none is for the API to refuse.
func applyFields(body map[string]any, values url.Values) {
	shown := map[string][]string{}
	if err := json.Unmarshal([]byte(values.Get(shownInput)), &shown); err != nil {
		shown = map[string][]string{} // each value counts as changed
	}
	for i := range view.PolicyFields {
		field := &view.PolicyFields[i]
		value := values.Get(field.Name)
		switch {
		case slices.Equal(slices.DeleteFunc(slices.Clone(values[field.Name]), isEmpty), shown[field.Name]):
		case field.IsSeveral && len(values[field.Name]) > 0:
			several := []any{}
			for _, one := range values[field.Name] {
				several = append(several, one)
			}
			body[field.Name] = several
		case field.IsSeveral, values.Has(field.Name) && value == "":
			delete(body, field.Name)
		case !values.Has(field.Name):
		case field.IsNumber && isNumber(value):
			body[field.Name] = json.Number(value)
		default:
			body[field.Name] = value
		}
	}
}

func isEmpty(value string) bool { return value == "" }

func isNumber(value string) bool {
	number, err := strconv.Atoi(value)
	return err == nil && strconv.Itoa(number) == value // JSON has no other spelling
}

// fieldsOf gives the values of a policy by field.
func fieldsOf(body map[string]any) map[string][]string {
	fields := map[string][]string{}
	for i := range view.PolicyFields {
		name := view.PolicyFields[i].Name
		switch value := body[name].(type) {
		case nil:
		case []any:
			for _, one := range value {
				fields[name] = append(fields[name], fmt.Sprint(one))
			}
		default:
			fields[name] = []string{fmt.Sprint(value)}
		}
	}
	return fields
}

// readEdit reads the policy that is edited. Values that were sent are shown in the place of those of the policy.
func readEdit(r *reader) (view.Page, error) {
	p, err := get(r, "RemediationPolicy", &v1alpha1.RemediationPolicy{})
	if err != nil {
		return view.Page{}, err
	}
	body, err := policyBody(p)
	if err != nil {
		return view.Page{}, err
	}
	in := view.PolicyEdit{Policy: p, Version: httpapi.PolicyTag(p), Before: fieldsOf(body), Tried: r.tried}
	if r.request.Method == http.MethodPost {
		applyFields(body, r.values)
	}
	shown, err := json.Marshal(in.Before)
	if err != nil {
		return view.Page{}, fmt.Errorf("encoding the values of a policy: %w", err)
	}
	in.Shown, in.After, in.Now = string(shown), fieldsOf(body), r.Now()
	return view.PolicyEditOf(&in), nil
}
