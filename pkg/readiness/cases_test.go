// SPDX-License-Identifier: Apache-2.0

package readiness

import "github.com/plumbline-dev/plumbline/pkg/specguard/canon"

// answer is one of kstatus (sigs.k8s.io/cli-utils, pkg/kstatus/status, Compute).
type answer string

const (
	current     answer = "Current"
	inProgress  answer = "InProgress"
	failed      answer = "Failed"
	terminating answer = "Terminating"
	refused     answer = "" // an error
)

// example is an object, what is said of it here, and what kstatus says. Kstatus
// is recorded: it was run over these very objects, at commit 5895ad6.
type example struct {
	gvk     canon.GVK
	object  string
	want    State
	kstatus answer
	// because explains where the two differ.
	because string
}

var (
	deployments  = canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	statefulSets = canon.GVK{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	daemonSets   = canon.GVK{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	replicaSets  = canon.GVK{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	jobs         = canon.GVK{Group: "batch", Version: "v1", Kind: "Job"}
	cronJobs     = canon.GVK{Group: "batch", Version: "v1", Kind: "CronJob"}
	pods         = canon.GVK{Version: "v1", Kind: "Pod"}
	claims       = canon.GVK{Version: "v1", Kind: "PersistentVolumeClaim"}
	services     = canon.GVK{Version: "v1", Kind: "Service"}
	configMaps   = canon.GVK{Version: "v1", Kind: "ConfigMap"}
	budgets      = canon.GVK{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	autoscalers  = canon.GVK{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	widgets      = canon.GVK{Group: "example.com", Version: "v1", Kind: "Widget"}
)

const (
	silence            = "what says nothing is not ready"
	rolledOut          = `{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}`
	availableCondition = `{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"}`
)

var examples = map[string]example{
	// Deployments.
	"a deployment that is rolled out": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		Ready, current, ""},
	"a deployment scaled to nothing": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":0,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		Ready, current, ""},
	"a deployment without replicas in its spec wants one": {deployments,
		`{"metadata":{"generation":2},"spec":{"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"conditions":[` + rolledOut + `]}}`,
		NotReady, inProgress, ""},
	"a deployment nobody has looked at": {deployments,
		`{"metadata":{"generation":1},"spec":{"replicas":0},"status":{}}`,
		NotReady, inProgress, ""},
	"a deployment whose controller says nothing but counters": {deployments,
		`{"metadata":{"generation":1},"spec":{"replicas":1},"status":{"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[` + availableCondition + `]}}`,
		NotReady, current, silence},
	"a deployment whose controller is one generation behind": {deployments,
		`{"metadata":{"generation":3},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment with a generation of another life": {deployments,
		`{"metadata":{"generation":1},"spec":{"replicas":1},"status":{"observedGeneration":7,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment with old pods": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":4,"updatedReplicas":3,"readyReplicas":4,"availableReplicas":4,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment half updated": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":1,"readyReplicas":3,"availableReplicas":3,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment with pods that are not available": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":2,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment with pods that are not ready": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":2,"availableReplicas":3,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment whose deadline is over": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":3,"readyReplicas":3,"availableReplicas":3,"conditions":[{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded"},` + availableCondition + `]}}`,
		NotReady, failed, ""},
	"a deployment whose controller does not say that it is over": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"},` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment without a deadline": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"progressDeadlineSeconds":2147483647},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[` + availableCondition + `]}}`,
		Ready, current, ""},
	"a deployment that is not available": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"False","message":"no minimum"}]}}`,
		NotReady, inProgress, ""},
	"a deployment that is paused, and whole": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"paused":true,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"},` + availableCondition + `]}}`,
		Ready, inProgress, "while it is paused the controller never says that the rollout is over; the counters do"},
	"a deployment that is paused with old pods": {deployments,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"paused":true,"progressDeadlineSeconds":600},"status":{"observedGeneration":2,"replicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Progressing","status":"Unknown","reason":"DeploymentPaused"},` + availableCondition + `]}}`,
		NotReady, inProgress, ""},
	"a deployment that is being deleted": {deployments,
		`{"metadata":{"generation":2,"deletionTimestamp":"2026-01-02T03:04:05Z"},"spec":{"replicas":1},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`,
		NotReady, terminating, ""},
	"a deployment without a generation": {deployments,
		`{"metadata":{},"spec":{"replicas":0},"status":{"conditions":[` + availableCondition + `]}}`,
		Unknown, current, "the API server gives every object of this kind one: this is not the whole object"},

	// StatefulSets.
	"a stateful set that is rolled out": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":3,"updatedReplicas":3,"availableReplicas":3,"currentRevision":"a","updateRevision":"a"}}`,
		Ready, current, ""},
	"a stateful set nobody has looked at": {statefulSets,
		`{"metadata":{"generation":1},"spec":{"replicas":0},"status":{}}`,
		NotReady, current, silence},
	"a stateful set with too few pods": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"currentReplicas":2,"updatedReplicas":2,"currentRevision":"a","updateRevision":"a"}}`,
		NotReady, inProgress, ""},
	"a stateful set with pods that are not ready": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":2,"currentReplicas":3,"updatedReplicas":3,"currentRevision":"a","updateRevision":"a"}}`,
		NotReady, inProgress, ""},
	"a stateful set with pods too many": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"currentReplicas":2,"updatedReplicas":2,"currentRevision":"a","updateRevision":"a"}}`,
		NotReady, inProgress, ""},
	"a stateful set in the middle of a rollout": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":1,"updatedReplicas":2,"currentRevision":"a","updateRevision":"b"}}`,
		NotReady, inProgress, ""},
	"a stateful set whose last pod was just renewed": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}},"status":{"observedGeneration":2,"replicas":1,"readyReplicas":1,"currentReplicas":0,"updatedReplicas":1,"currentRevision":"a","updateRevision":"b"}}`,
		NotReady, current, "a partition of 0 is what the API server writes for none, so the revisions have to be one"},
	"a stateful set rolled out above its partition": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":2}}},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":2,"updatedReplicas":1,"currentRevision":"a","updateRevision":"b"}}`,
		Ready, current, ""},
	"a stateful set with a partition above all pods": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":9}}},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":3,"currentRevision":"a","updateRevision":"b"}}`,
		Ready, current, ""},
	"a stateful set not rolled out above its partition": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":3,"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}},"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"currentReplicas":2,"updatedReplicas":1,"currentRevision":"a","updateRevision":"b"}}`,
		NotReady, inProgress, ""},
	"a stateful set renewed by deletion, whole": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":2,"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":2,"currentReplicas":2,"currentRevision":"a","updateRevision":"b"}}`,
		Ready, current, ""},
	"a stateful set renewed by deletion, not ready": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":2,"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"replicas":2,"readyReplicas":1,"currentReplicas":2,"currentRevision":"a","updateRevision":"b"}}`,
		NotReady, current, "who renews its pods does not matter: they have to be ready"},
	"a stateful set whose pods have to be ready for a while": {statefulSets,
		`{"metadata":{"generation":2},"spec":{"replicas":1,"minReadySeconds":30},"status":{"observedGeneration":2,"replicas":1,"readyReplicas":1,"currentReplicas":1,"updatedReplicas":1,"availableReplicas":0,"currentRevision":"a","updateRevision":"a"}}`,
		NotReady, current, "ready for too short a time is not yet what its spec asks for"},

	// DaemonSets.
	"a daemon set that is rolled out": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":4,"updatedNumberScheduled":4,"numberAvailable":4,"numberReady":4}}`,
		Ready, current, ""},
	"a daemon set with no node to run on": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":0}}`,
		Ready, current, ""},
	"a daemon set nobody has looked at": {daemonSets,
		`{"metadata":{"generation":1},"spec":{},"status":{"desiredNumberScheduled":0}}`,
		NotReady, inProgress, ""},
	"a daemon set that does not say where": {daemonSets,
		`{"metadata":{"generation":1},"spec":{},"status":{"observedGeneration":1}}`,
		NotReady, inProgress, ""},
	"a daemon set with too few pods": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3,"numberReady":3}}`,
		NotReady, inProgress, ""},
	"a daemon set with old pods": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":4,"updatedNumberScheduled":3,"numberAvailable":4,"numberReady":4}}`,
		NotReady, inProgress, ""},
	"a daemon set renewed by deletion, with old pods": {daemonSets,
		`{"metadata":{"generation":2},"spec":{"updateStrategy":{"type":"OnDelete"}},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":4,"updatedNumberScheduled":0,"numberAvailable":4,"numberReady":4}}`,
		Ready, inProgress, "with OnDelete old pods are what its spec asks for"},
	"a daemon set with pods that are not available": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":4,"updatedNumberScheduled":4,"numberAvailable":3,"numberReady":4}}`,
		NotReady, inProgress, ""},
	"a daemon set with pods that are not ready": {daemonSets,
		`{"metadata":{"generation":2},"spec":{},"status":{"observedGeneration":2,"desiredNumberScheduled":4,"currentNumberScheduled":4,"updatedNumberScheduled":4,"numberAvailable":4,"numberReady":3}}`,
		NotReady, inProgress, ""},

	// ReplicaSets.
	"a replica set that is whole": {replicaSets,
		`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":2}}`,
		Ready, current, ""},
	"a replica set nobody has looked at": {replicaSets,
		`{"metadata":{"generation":1},"spec":{"replicas":0},"status":{}}`,
		NotReady, current, silence},
	"a replica set that may not make pods": {replicaSets,
		`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":2,"conditions":[{"type":"ReplicaFailure","status":"True","message":"quota"}]}}`,
		NotReady, inProgress, ""},
	"a replica set with too few available": {replicaSets,
		`{"metadata":{"generation":2},"spec":{"replicas":2},"status":{"observedGeneration":2,"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":1}}`,
		NotReady, inProgress, ""},

	// Jobs and CronJobs.
	"a job nobody has started": {jobs, `{"metadata":{"generation":1},"spec":{},"status":{}}`, NotReady, inProgress, ""},
	"a job that runs":          {jobs, `{"metadata":{"generation":1},"spec":{},"status":{"startTime":"2026-01-02T03:04:05Z","active":1}}`, Ready, current, ""},
	"a job that is complete":   {jobs, `{"metadata":{"generation":1},"spec":{},"status":{"conditions":[{"type":"Complete","status":"True"}]}}`, Ready, current, ""},
	"a job that failed":        {jobs, `{"metadata":{"generation":1},"spec":{},"status":{"startTime":"2026-01-02T03:04:05Z","conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded"}]}}`, NotReady, failed, ""},
	"a job that is suspended":  {jobs, `{"metadata":{"generation":1},"spec":{"suspend":true},"status":{"conditions":[{"type":"Suspended","status":"True"}]}}`, Ready, current, ""},
	"a job that is to be suspended": {jobs, `{"metadata":{"generation":1},"spec":{"suspend":true},"status":{"startTime":"2026-01-02T03:04:05Z"}}`,
		NotReady, current, "its spec asks for something that is not so yet"},
	"a cron job that never ran": {cronJobs, `{"metadata":{"generation":1},"spec":{},"status":{}}`, Ready, current, ""},

	// Other kinds of Kubernetes.
	"a pod that serves":         {pods, `{"metadata":{},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, Ready, current, ""},
	"a pod that is not ready":   {pods, `{"metadata":{},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`, NotReady, inProgress, ""},
	"a pod that ended well":     {pods, `{"metadata":{},"status":{"phase":"Succeeded"}}`, Ready, current, ""},
	"a pod that failed":         {pods, `{"metadata":{},"status":{"phase":"Failed"}}`, NotReady, current, "kstatus says that nothing more will happen; it does not work all the same"},
	"a pod that waits":          {pods, `{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z"},"status":{"phase":"Pending"}}`, NotReady, inProgress, ""},
	"a pod nobody looked at":    {pods, `{"metadata":{},"status":{}}`, NotReady, inProgress, ""},
	"a pod on a silent node":    {pods, `{"metadata":{},"status":{"phase":"Unknown"}}`, Unknown, refused, ""},
	"a claim that is bound":     {claims, `{"metadata":{},"status":{"phase":"Bound"}}`, Ready, current, ""},
	"a claim that waits":        {claims, `{"metadata":{},"status":{"phase":"Pending"}}`, NotReady, inProgress, ""},
	"a claim nobody looked at":  {claims, `{"metadata":{},"status":{}}`, NotReady, inProgress, ""},
	"a service":                 {services, `{"metadata":{},"spec":{"type":"ClusterIP"},"status":{"loadBalancer":{}}}`, Ready, current, ""},
	"a service with a balancer": {services, `{"metadata":{},"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`, Ready, current, ""},
	"a service without its balancer": {services, `{"metadata":{},"spec":{"type":"LoadBalancer","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{}}}`,
		NotReady, current, "what it is for is not there yet"},
	"a config map":              {configMaps, `{"metadata":{},"data":{"a":"b"}}`, Ready, current, ""},
	"a budget that counts":      {budgets, `{"metadata":{"generation":1},"status":{"observedGeneration":1}}`, Ready, current, ""},
	"a budget nobody looked at": {budgets, `{"metadata":{"generation":1},"status":{}}`, NotReady, current, silence},
	"a budget that cannot count": {budgets, `{"metadata":{"generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"DisruptionAllowed","status":"False","reason":"SyncFailed"}]}}`,
		NotReady, current, "its controller says that it cannot"},
	"an autoscaler that scales": {autoscalers, `{"metadata":{},"status":{"conditions":[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"True"}]}}`, Ready, current, ""},
	"an autoscaler switched off": {autoscalers, `{"metadata":{},"status":{"conditions":[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"False","reason":"ScalingDisabled"}]}}`,
		Ready, current, ""},
	"an autoscaler without metrics": {autoscalers, `{"metadata":{},"status":{"conditions":[{"type":"AbleToScale","status":"True"},{"type":"ScalingActive","status":"False","reason":"FailedGetResourceMetric"}]}}`,
		NotReady, current, "kstatus has no rule for it; it does not scale"},
	"an autoscaler nobody looked at": {autoscalers, `{"metadata":{},"status":{}}`, NotReady, current, silence},
	"an autoscaler in the dark": {autoscalers, `{"metadata":{},"status":{"conditions":[{"type":"AbleToScale","status":"Unknown"}]}}`,
		Unknown, current, "kstatus has no rule for it; it says itself that it does not know"},

	// Custom kinds.
	"a widget that is ready":      {widgets, `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, Ready, current, ""},
	"a widget that is not":        {widgets, `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","status":"False","reason":"Broken"}]}}`, NotReady, inProgress, ""},
	"a widget that does not know": {widgets, `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`, Unknown, inProgress, "it says itself that it does not know"},
	"a widget that is stalled": {widgets, `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Stalled","status":"True","message":"bad spec"}]}}`,
		NotReady, failed, ""},
	"a widget that is being reconciled": {widgets, `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Reconciling","status":"True"},{"type":"Ready","status":"True"}]}}`,
		NotReady, inProgress, ""},
	"a widget of an older generation": {widgets, `{"metadata":{"generation":2},"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`,
		NotReady, inProgress, ""},
	"a widget whose controller has nothing against it": {widgets, `{"metadata":{"generation":2},"status":{"observedGeneration":2}}`, Ready, current, ""},
	"a widget that is not available": {widgets, `{"metadata":{"generation":2},"status":{"observedGeneration":2,"conditions":[{"type":"Available","status":"False"}]}}`,
		NotReady, current, "kstatus does not know the condition; it says itself that it is not"},
	"a widget without a status":              {widgets, `{"metadata":{"generation":1},"spec":{}}`, Unknown, current, "nothing says that anybody has looked at it"},
	"a widget with a status of its own":      {widgets, `{"metadata":{"generation":1},"status":{"phase":"Happy"}}`, Unknown, current, "nothing says that it is ready in words that are known"},
	"a widget with odd conditions":           {widgets, `{"metadata":{"generation":1},"status":{"conditions":[7,{"type":3},{"type":"Ready"}]}}`, Unknown, refused, ""},
	"a widget with conditions that are none": {widgets, `{"metadata":{"generation":1},"status":{"conditions":"fine"}}`, Unknown, refused, ""},
}
