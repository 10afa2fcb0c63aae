// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

const deploymentJSON = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {
    "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "generation": 3,
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "labels": {"app": "web"},
    "annotations": {"plumbline.dev/writer": "alice", "huge": "dropped"},
    "managedFields": [{"manager": "kubectl-set", "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": {"f:spec": {}}}]
  },
  "spec": {"replicas": 9007199254740993, "template": {"spec": {"containers": [{"name": "app", "image": "shop/web:1"}]}}},
  "status": {"readyReplicas": 1}
}`

func TestDecodeKeepsWhatDecides(t *testing.T) {
	object, err := Decode([]byte(deploymentJSON), deployments)
	must(t, err)
	type summary struct {
		Namespace, Name, UID, RV, Writer string
		Generation                       int64
		Annotations                      map[string]string
	}
	got := summary{
		object.Namespace, object.Name, string(object.UID), object.ResourceVersion, object.Writer(),
		object.Generation, object.Annotations,
	}
	want := summary{
		"shop", "web", "u1", "7", "alice", 3,
		map[string]string{"plumbline.dev/writer": "alice"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if object.ManagedFields != nil {
		t.Error("managedFields are kept twice")
	}
	managed, err := object.ManagedFieldsJSON()
	must(t, err)
	if !strings.Contains(string(managed), "kubectl-set") {
		t.Errorf("managed fields are %q", managed)
	}
}

func TestDecodeKeepsTheBodyExactly(t *testing.T) {
	object, err := Decode([]byte(deploymentJSON), deployments)
	must(t, err)
	want, err := canon.HashBody([]byte(deploymentJSON), canon.GVK(deployments))
	must(t, err)
	if object.FullHash != want {
		t.Errorf("hash is %s, want %s", object.FullHash, want)
	}
	body, err := object.Body()
	must(t, err)
	again, err := canon.HashBody(body, canon.GVK(deployments))
	must(t, err)
	if again != want {
		t.Errorf("the kept body hashes to %s, want %s", again, want)
	}
	if !strings.Contains(string(body), "9007199254740993") {
		t.Errorf("a number lost digits: %s", body)
	}
	if strings.Contains(string(body), "readyReplicas") {
		t.Error("the status is kept")
	}
}

func TestUnreadableBodiesAreUnknownAndHarmNothing(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	tests := map[string]struct {
		spec       string
		wantReason canon.Reason
	}{
		"over-deep":      {spec: deep, wantReason: canon.ReasonTooDeep},
		"duplicate keys": {spec: `{"a":1,"a":2}`, wantReason: canon.ReasonDuplicateKey},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"1"},"spec":%s}`, tc.spec)
			object, err := Decode([]byte(raw), deployments)
			must(t, err)
			if object.Unreadable == nil || object.FullHash != "" {
				t.Fatalf("readable: hash %q", object.FullHash)
			}
			if !strings.Contains(object.Unreadable.Error(), string(tc.wantReason)) && object.Unreadable.Error() == "" {
				t.Errorf("the error does not say why: %v", object.Unreadable)
			}
		})
	}
}

func TestDecodeList(t *testing.T) {
	list, err := decodeList(strings.NewReader(
		`{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"42","continue":"more","remainingItemCount":3},"items":[`+
			deploymentJSON+`,`+strings.ReplaceAll(deploymentJSON, `"shop"`, `"kube-system"`)+`]}`),
		deployments, intake{keep: wholeBut("kube-system")})
	must(t, err)
	if list.ResourceVersion != "42" || list.Continue != "more" {
		t.Errorf("list metadata is %+v", list.ListMeta)
	}
	if len(list.Items) != 1 || list.Items[0].Namespace != "shop" {
		t.Errorf("items are %v, want the one of namespace shop", list.Items)
	}
}

func TestDecodeListRefusesWhatIsCutOff(t *testing.T) {
	complete := `{"metadata":{"resourceVersion":"42"},"items":[` + deploymentJSON + `]}`
	for cut := range len(complete) {
		if list, err := decodeList(strings.NewReader(complete[:cut]), deployments, intake{keep: whole}); err == nil {
			t.Fatalf("a list cut off after %d bytes is taken for %d items", cut, len(list.Items))
		}
	}
}

func TestDecompressRefusesBombs(t *testing.T) {
	bomb := Compress(make([]byte, MaxBodySize+1))
	if _, err := Decompress(bomb); err == nil {
		t.Errorf("%d bytes grew over the limit", len(bomb))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(deploymentJSON))
	f.Add([]byte(`{"metadata":null}`))
	f.Add([]byte(`{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, err := Decode(raw, deployments)
		if err != nil {
			return
		}
		if (object.FullHash == "") != (object.Unreadable != nil) {
			t.Fatalf("hash %q, unreadable %v", object.FullHash, object.Unreadable)
		}
		if object.Unreadable == nil {
			if _, err := object.Body(); err != nil {
				t.Fatalf("a readable object has no body: %v", err)
			}
		}
	})
}
