// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Server answers one request: method, path with its query, content type, body.
type Server func(method, path, contentType string, body []byte) (int, []byte, error)

// Ask prepares what a row needs under a name that nobody has used, sends its
// request, and says what came of it. An error says that it could not be asked.
func (row Row) Ask(server Server, name string) (Answer, error) {
	x, err := row.prepare(server, name)
	if err != nil {
		return Answer{}, fmt.Errorf("preparing: %w", err)
	}
	before, err := read(server, row.Kind, x)
	if err != nil {
		return Answer{}, fmt.Errorf("reading what is there: %w", err)
	}
	code, raw, err := row.send(server, x)
	if err != nil {
		return Answer{}, fmt.Errorf("asking: %w", err)
	}
	after, err := read(server, row.Kind, x)
	if err != nil {
		return Answer{}, fmt.Errorf("reading what is left: %w", err)
	}
	answer := Answer{Code: code, Effect: effect(before, after)}
	if code < http.StatusBadRequest {
		return answer, nil
	}
	var status metav1.Status
	if err := json.Unmarshal(raw, &status); err != nil {
		return Answer{}, fmt.Errorf("reading the refusal %q: %w", raw, err)
	}
	answer.Reason = string(status.Reason)
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			// A JSON patch that cannot be applied has one cause that says nothing.
			if c.Type != metav1.CauseTypeUnexpectedServerResponse {
				answer.Causes = append(answer.Causes, string(c.Type)+" "+c.Field)
			}
		}
	}
	return answer, nil
}

func (row Row) send(server Server, x *Existing) (int, []byte, error) {
	path := fmt.Sprintf(row.Kind.Path, x.Namespace)
	if row.Method != http.MethodPost {
		path += "/" + x.Name
	}
	if row.Subresource != "" {
		path += "/" + row.Subresource
	}
	if row.DryRun {
		path += "?dryRun=All"
	}
	contentType := row.ContentType
	if contentType == "" {
		contentType = plain
	}
	var body []byte
	if row.Body != nil {
		var err error
		if body, err = json.Marshal(row.Body(x)); err != nil {
			return 0, nil, err
		}
	}
	return server(row.Method, path, contentType, body)
}

// prepare makes what a row needs: a namespace of its own, and its object.
func (row Row) prepare(server Server, name string) (*Existing, error) {
	x := &Existing{Name: name, Namespace: name}
	if row.Setup != NoNamespace {
		namespace := map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": name}}
		if err := expect(server, http.MethodPost, "/api/v1/namespaces", plain, namespace, nil); err != nil {
			return nil, err
		}
	}
	x.Object = map[string]any{
		"kind": row.Kind.Kind, "apiVersion": row.Kind.APIVersion, "spec": copied(row.Kind.Spec),
		"metadata": map[string]any{"name": name, "namespace": name},
	}
	collection := fmt.Sprintf(row.Kind.Path, name)
	switch row.Setup {
	case Absent:
		// What a row sends was once right.
		x.UID, x.Version, x.Old = "00000000-0000-4000-8000-000000000001", "1", "1"
		x.meta()["uid"], x.meta()["resourceVersion"] = x.UID, x.Version
		return x, nil
	case NoNamespace:
		return x, nil
	case EndingNamespace:
		return x, expect(server, http.MethodDelete, "/api/v1/namespaces/"+name, plain, nil, nil)
	case Held:
		x.meta()["finalizers"] = []any{"sim.plumbline.dev/held"}
	case Present:
	}
	if err := expect(server, http.MethodPost, collection, plain, x.Object, &x.Object); err != nil {
		return nil, err
	}
	x.Old = x.meta()["resourceVersion"].(string)
	// Another version, so that the first is stale.
	labeled := map[string]any{"metadata": map[string]any{"labels": map[string]any{"version": "second"}}}
	if err := expect(server, http.MethodPatch, collection+"/"+name, mergePatch, labeled, &x.Object); err != nil {
		return nil, err
	}
	x.UID, x.Version = x.meta()["uid"].(string), x.meta()["resourceVersion"].(string)
	return x, nil
}

func expect(server Server, method, path, contentType string, body any, into *map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if body == nil {
		raw = nil
	}
	code, answer, err := server(method, path, contentType, raw)
	if err != nil {
		return err
	}
	if code >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %d %s", method, path, code, answer)
	}
	if into == nil {
		return nil
	}
	*into = nil
	return utiljson.Unmarshal(answer, into)
}

func copied(v map[string]any) map[string]any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var c map[string]any
	if err := utiljson.Unmarshal(raw, &c); err != nil {
		panic(err)
	}
	return c
}

// read returns the object; nil when it is not there.
func read(server Server, kind Kind, x *Existing) (map[string]any, error) {
	code, raw, err := server(http.MethodGet, fmt.Sprintf(kind.Path, x.Namespace)+"/"+x.Name, "", nil)
	if err != nil || code == http.StatusNotFound {
		return nil, err
	}
	var o map[string]any
	if err := utiljson.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	return o, nil
}

func effect(before, after map[string]any) Effect {
	switch {
	case after == nil:
		return Missing
	case before == nil:
		return Made
	}
	was, is := before["metadata"].(map[string]any), after["metadata"].(map[string]any)
	switch {
	case is["deletionTimestamp"] != nil:
		return Ending
	case was["generation"] != is["generation"]:
		return Moved
	case was["resourceVersion"] != is["resourceVersion"]:
		return Written
	}
	return Unchanged
}
