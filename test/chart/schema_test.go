// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

func specOfFile(t *testing.T, crd string) any {
	t.Helper()
	plural, _, _ := strings.Cut(crd, ".")
	body, err := os.ReadFile(filepath.Join(rendered.ChartDir(), "files", "crds", "plumbline.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Objects(string(body))
	if err != nil {
		t.Fatal(err)
	}
	return objects[0].Object["spec"]
}

func TestRefusedValues(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 63)
	tests := map[string]struct {
		set  string // as JSON
		path string // that the message names
	}{
		"a memory limit in Kubernetes' spelling": {`webhook.goMemoryLimit="200Mi"`, "/webhook/goMemoryLimit"},
		"an unknown value":                       {`replicas=2`, "additional properties 'replicas'"},
		"an unknown value below":                 {`webhook.replica=2`, "/webhook"},
		"a number as text":                       {`webhook.replicas="2"`, "/webhook/replicas"},
		"fewer than no replicas":                 {`webhook.replicas=-1`, "/webhook/replicas"},
		"Secrets guarded":                        {`guard.resources=[{"group":"","version":"v1","resource":"secrets"}]`, "/guard/resources/0"},
		"Nodes guarded":                          {`guard.resources=[{"group":"","version":"v1","resource":"nodes"}]`, "/guard/resources/0"},
		"Leases guarded":                         {`guard.resources=[{"group":"coordination.k8s.io","version":"v1","resource":"leases"}]`, "/guard/resources/0"},
		"our own kinds guarded":                  {`guard.resources=[{"group":"plumbline.dev","version":"v1alpha1","resource":"baselines"}]`, "/guard/resources/0"},
		"certificate requests guarded":           {`guard.resources=[{"group":"certificates.k8s.io","version":"v1","resource":"certificatesigningrequests"}]`, "/guard/resources/0"},
		"a kind instead of a resource":           {`guard.resources=[{"group":"apps","version":"v1","resource":"Deployment"}]`, "/guard/resources/0/resource"},
		"a wildcard":                             {`guard.resources=[{"group":"apps","version":"v1","resource":"*"}]`, "/guard/resources/0/resource"},
		"a subresource as a resource":            {`guard.resources=[{"group":"apps","version":"v1","resource":"deployments/scale"}]`, "/guard/resources/0/resource"},
		"a resource without version":             {`guard.resources=[{"group":"apps","resource":"deployments"}]`, "missing property 'version'"},
		"no resources":                           {`guard.resources=[]`, "/guard/resources"},
		"a resource twice":                       {`guard.resources=[{"group":"apps","version":"v1","resource":"a"},{"group":"apps","version":"v1","resource":"a"}]`, "/guard/resources"},
		"a category in lower case":               {`guard.resources=["workloads"]`, "/guard/resources/0"},
		"a category that does not exist":         {`guard.resources=["Workloads","Everything"]`, "/guard/resources/1"},
		"a category twice":                       {`guard.resources=["Workloads","Workloads"]`, "/guard/resources"},
		"all of a pod's subresources":            {`guard.podSubresources=["*"]`, "/guard/podSubresources/0"},
		"a pod's status":                         {`guard.podSubresources=["status"]`, "/guard/podSubresources/0"},
		"a group with a comma":                   {`guard.stampedGroups=["a,b"]`, "/guard/stampedGroups/0"},
		"an empty group":                         {`guard.stampedGroups=[""]`, "/guard/stampedGroups/0"},
		"a namespace pattern":                    {`test.namespace="team-*"`, "/test/namespace"},
		"another stamper":                        {`policies.writerStamp="Nobody"`, "/policies/writerStamp"},
		"a time-out that delays every write":     {`webhookConfiguration.timeoutSeconds=30`, "/webhookConfiguration/timeoutSeconds"},
		"a CPU limit":                            {`webhook.resources.limits.cpu="1"`, "/webhook/resources/limits/cpu"},
		"no memory request":                      {`assessor.resources.requests.memory=null`, "missing property 'memory'"},
		"a port that needs a privilege":          {`webhook.port=443`, "/webhook/port"},
		"a digest that is too short":             {`webhook.image.digest="` + digest + `"`, "/webhook/image/digest"},
		"a retention without unit":               {`assessor.retention="168"`, "/assessor/retention"},
		"a drift interval without unit":          {`assessor.driftInterval="180"`, "/assessor/driftInterval"},
		"a drift interval of no time":            {`controller.driftInterval="0h0s"`, "/controller/driftInterval"},
		"a drift threshold of nothing":           {`assessor.driftThreshold=0`, "/assessor/driftThreshold"},
		"a drift threshold beyond all":           {`controller.driftThreshold=1.5`, "/controller/driftThreshold"},
		"a percentage without its sign":          {`assessor.driftThreshold="20"`, "/assessor/driftThreshold"},
		"our Redis and another":                  {`redis.external.address="redis:6379"`, "/redis/enabled"},
		"TLS with nothing to know Redis by":      {`redis.external.tls.enabled=true`, "/redis/external/tls/caSecret"},
		"another Redis without port":             {`redis.enabled=false,redis.external.address="redis"`, "/redis/external/address"},
		"a key prefix that programs refuse":      {`redis.keyPrefix="Plumbline"`, "/redis/keyPrefix"},
		"a key prefix that is a pattern":         {`redis.keyPrefix="*"`, "/redis/keyPrefix"},
		"a key prefix that adds an ACL rule":     {`redis.keyPrefix="a +@all"`, "/redis/keyPrefix"},
		"several Redis servers that stand alone": {`redis={"enabled":false,"external":{"address":"a:1,b:2"}}`, "/redis/external/address"},
		"Sentinels that watch no primary":        {`redis.enabled=false,redis.external.address="a:1",redis.external.mode="Sentinel"`, "/redis/external/masterName"},
		"the password of no Sentinel":            {`redis.enabled=false,redis.external.address="a:1",redis.external.existingSecret="redis",redis.external.sentinelPasswordKey="p"`, "/redis/external/sentinelPasswordKey"},
		"a Sentinel's password in no Secret":     {`redis.enabled=false,redis.external.address="a:1",redis.external.mode="Sentinel",redis.external.masterName="m",redis.external.sentinelPasswordKey="p"`, "/redis/external/existingSecret"},
		"a primary that no Sentinel watches":     {`redis.external.masterName="plumbline"`, "/redis/external/masterName"},
		"a kind of Redis that there is not":      {`redis.external.mode="Ring"`, "/redis/external/mode"},
		"a privileged container":                 {`securityContext.privileged=true`, "/securityContext/privileged"},
		"a budget that keeps each node":          {`webhook.podDisruptionBudget.maxUnavailable=0`, "/webhook/podDisruptionBudget/maxUnavailable"},
		"a spread without a topology":            {`api.topologySpreadConstraints=[{"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]`, "missing property 'topologyKey'"},
		"an object without a kind":               {`extraObjects=[{"apiVersion":"v1"}]`, "/extraObjects/0"},
		"a variable without a name":              {`executor.extraEnv=[{"value":"a"}]`, "/executor/extraEnv/0"},
		"a mount without a path":                 {`webhook.extraVolumeMounts=[{"name":"a"}]`, "/webhook/extraVolumeMounts/0"},
		"an annotation that is a number":         {`webhook.serviceAccount.annotations.a=1`, "/webhook/serviceAccount/annotations/a"},
		"no time for Redis":                      {`redis.timeout="0s"`, "/redis/timeout"},
		"a minute for Redis":                     {`redis.timeout="1m"`, "/redis/timeout"},
		"a time for Redis without a unit":        {`redis.timeout=50`, "/redis/timeout"},
		"a label that is a number":               {`commonLabels.team=1`, "/commonLabels/team"},
		"a namespace pattern for the executor":   {`executor.namespaces=["team-*"]`, "/executor/namespaces/0"},
		"a cap that allows nothing":              {`executor.caps.maxPerHour=0`, "/executor/caps/maxPerHour"},
		"a cap beyond what a ledger can hold":    {`executor.caps.maxPerDay=10000`, "/executor/caps/maxPerDay"},
		"a cap in words":                         {`executor.caps.maxConcurrent="many"`, "/executor/caps/maxConcurrent"},
		"evidence in a directory of the image":   {`executor.evidence.url="file:///tmp"`, "/executor/evidence/url"},
		"evidence on the node's own disk":        {`executor.evidence.volume.source={"hostPath":{"path":"/tmp"}}`, "/executor/evidence/volume/source"},
		"evidence in a Secret":                   {`executor.evidence.volume.source={"secret":{"secretName":"a"}}`, "/executor/evidence/volume/source"},
		"two volumes for one evidence":           {`executor.evidence.volume.source={"csi":{},"persistentVolumeClaim":{}}`, "/executor/evidence/volume/source"},
		"evidence that one may only read":        {`executor.evidence.volume.accessModes=["ReadOnlyMany"]`, "/executor/evidence/volume/accessModes/0"},
		"a size without number":                  {`executor.evidence.volume.size="Gi"`, "/executor/evidence/volume/size"},
		"a channel that is the evidence's key":   {`notifications.secrets=["plumbline-evidence"]`, "/notifications/secrets/0"},
		"a channel that is our certificate":      {`notifications.secrets=["plumbline-webhook-tls"]`, "/notifications/secrets/0"},
		"a gate that is our authority":           {`delivery.gateSecrets=["plumbline-xds"]`, "/delivery/gateSecrets/0"},
		"a router that is our authority":         {`routers.secrets=["plumbline-xds"]`, "/routers/secrets/0"},
		"a Prometheus without a scheme":          {`metrics.prometheus.url="prometheus:9090"`, "/metrics/prometheus/url"},
		"a Prometheus with a password":           {`metrics.prometheus.url="https://a:b@prometheus"`, "/metrics/prometheus/url"},
		"a network without a length":             {`notifications.allowedNetworks=["10.0.0.0"]`, "/notifications/allowedNetworks/0"},
		"port 0":                                 {`outbound.ports=[0]`, "/outbound/ports/0"},
		"a mode that there is not":               {`mesh.inject.mode="tproxy"`, "/mesh/inject/mode"},
		"a proxy without threads":                {`mesh.inject.concurrency=0`, "/mesh/inject/concurrency"},
		"a proxy that runs as root":              {`mesh.inject.uid=0`, "/mesh/inject/uid"},
		"a token without a unit of time":         {`mesh.inject.tokenLifetime="3600"`, "/mesh/inject/tokenLifetime"},
		"a token that the API server gives none": {`mesh.inject.tokenLifetime="9m59s"`, "/mesh/inject/tokenLifetime"},
		"a token that ends in no time":           {`mesh.inject.tokenLifetime="0h100s"`, "/mesh/inject/tokenLifetime"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			for _, set := range splitSets(test.set) {
				args = append(args, "--set-json", set)
			}
			_, err := helm.Template(t.Context(), args...)
			var failed *rendered.Error
			if !errors.As(err, &failed) {
				t.Fatalf("accepted (%v)", err)
			}
			if !strings.Contains(failed.Stderr, "values don't meet the specifications of the schema") || !strings.Contains(failed.Stderr, test.path) {
				t.Errorf("the message does not name %s:\n%s", test.path, failed.Stderr)
			}
		})
	}
}

// splitSets splits at commas that part two assignments: those outside brackets.
func splitSets(text string) []string {
	if strings.ContainsAny(text, "[{") {
		return []string{text}
	}
	return strings.Split(text, ",")
}

// A value without a place in the schema could not be set; a place in the schema
// without a value would be documented nowhere.
func TestValuesAndSchemaSpeakOfTheSame(t *testing.T) {
	var values, schema map[string]any
	readYAML(t, "values.yaml", &values)
	readYAML(t, "values.schema.json", &schema)
	compareValues(t, schema, schema, values, "")
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(rendered.ChartDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(body, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func compareValues(t *testing.T, root, schema, values map[string]any, path string) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		found, _, err := unstructured.NestedMap(root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
		if err != nil || found == nil {
			t.Fatalf("%s: %s leads nowhere (%v)", path, ref, err)
		}
		schema = found
	}
	properties, closed := schema["properties"].(map[string]any)
	if !closed || schema["additionalProperties"] != false {
		return // free-form, such as labels
	}
	for key := range properties {
		// global is Helm's.
		if _, ok := values[key]; !ok && path+"/"+key != "/global" {
			t.Errorf("%s/%s is in the schema and not in values.yaml", path, key)
		}
	}
	for key, value := range values {
		property, ok := properties[key].(map[string]any)
		if !ok {
			t.Errorf("%s/%s is in values.yaml and not in the schema", path, key)
			continue
		}
		if nested, ok := value.(map[string]any); ok {
			compareValues(t, root, property, nested, path+"/"+key)
		}
	}
}
