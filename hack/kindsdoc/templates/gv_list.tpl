{{- define "gvList" -}}
{{- $groupVersions := . -}}
<!-- Generated from pkg/apis by crd-ref-docs; change the types or hack/kindsdoc/templates, then run make generate. -->
# Kinds

What Plumbline keeps in the Kubernetes API. A person writes guards, Environments, GuardDefaults, RemediationPolicies, RemediationRequests, ABReleases and RolloutStrategies, and sets `accept` in a Baseline; Plumbline writes the other kinds, and each status.
Every field is bounded and every enum closed: a wrong object is refused by the API server, with the path of the field. All kinds are in the category `plumbline` (`kubectl get plumbline`).

| Kind | Short | Scope | Written by | Answers |
|---|---|---|---|---|
| [Environment](#environment) |  | cluster | people | how much do these namespaces matter? |
| [GuardDefaults](#guarddefaults) |  | cluster | people | how often is checked, how much at once? |
| [ClusterSpecGuard](#clusterspecguard) |  | cluster | the platform team | what is guarded in which namespaces, and who may change it? |
| [SpecGuard](#specguard) |  | namespace | the team that owns the namespace | what is guarded here, and who may change it? |
| [Baseline](#baseline) |  | namespace | Plumbline; people set `spec.accept` | what was authorized for this object, and what runs? |
| [BaselineRevision](#baselinerevision) |  | namespace | Plumbline | what did the authorized object look like? |
| [RemediationRequest](#remediationrequest) | `rreq` | namespace | people, in their own name | put these drifted objects back now? |
| [RemediationPolicy](#remediationpolicy) | `rpol` | cluster | the platform team | which drift of an Environment is remediated, when, and how much at once? |
| [RemediationPlan](#remediationplan) | `rplan` | namespace | Plumbline, and people in their own name; people set `spec.control` | which steps remediate these objects, and how did each end? |
| [EffectivenessAssessment](#effectivenessassessment) | `ea` | namespace | Plumbline | did a write of a plan help, and is it still in effect? |
| [RemediationLedger](#remediationledger) | `rled` | Plumbline's namespace | Plumbline; people set `spec.halt` and `spec.override` | what was granted lately, and who has halted remediation? |
| [ABRelease](#abrelease) | `abr` | namespace | the team that owns the namespace | how are the requests of this Service divided, and who has that? |
| [RolloutStrategy](#rolloutstrategy) | `rstrategy` | cluster | the platform team | by which stages does a new revision get requests? |
| [ReleaseWork](#releasework) | `rwork` | namespace | Plumbline | which write to a workload does a release need, and how did it end? |

Ready, Reconciling and Stalled follow kstatus: Ready is True when the object is in force (of a Baseline: in sync), Reconciling is True while the observation lags behind the spec, Stalled is True when only a change of the spec can help. `status.observedGeneration` below `metadata.generation` means that the status speaks of an older spec. Announced of a RemediationPlan is False until people are [told of the end](../guides/notifications.md#what-is-promised). [Each other condition](api-policy.md#conditions) is there from the first status on, and False where it does not hold.

## What a guard does

| `mode` | `managementPolicy` | suspended | foreign change is | the writer is | the object may be repaired |
|---|---|---|---|---|---|
| Audit | Managed | no | drift | not told | if a RemediationPolicy says so |
| Audit | Unmanaged | no | drift | not told | never |
| Warn | Managed | no | drift | warned | if a RemediationPolicy says so |
| Warn | Unmanaged | no | drift | warned | never |
| Deny | Managed | no | refused; drift where it was not | told by the refusal | if a RemediationPolicy says so |
| Deny | Unmanaged | no | refused; drift where it was not | told by the refusal | never |
| Audit, Warn or Deny | Managed or Unmanaged | until `suspend.until` | not looked at by this guard | not told | not for this guard |

Where several guards select an object the stricter result holds: a writer is trusted only if all of them trust it, a path is ignored only if all of them ignore it, one that warns makes it a warning, one that denies refuses it, and one Unmanaged forbids repair. There a ClusterSpecGuard decides alone: under it, what a SpecGuard says in `managementPolicy`, `resyncPeriod` and `suspend` holds up no repair, so that a tenant does not keep the platform from its own. A ClusterSpecGuard may name in `acceptBy` who alone may accept what runs now; where several do, all of them must name the requester, the suspended ones included. A suspended guard is out of that count until its time is over, with one exception: a writer whom it does not trust stays untrusted, so that nothing is authorized meanwhile that the guard would not have authorized. A label that somebody takes off releases no object; a guard whose selector no longer asks for the labels that the object had does, and so does a trusted writer who moves the label together with content. At most 64 SpecGuards of one namespace are in force; of more, the oldest are. Deny is for ClusterSpecGuards only: [Deny](deny.md).

A guard names kinds of the built-in API groups from closed lists, so that a misspelt or cluster-scoped kind is refused when it is written. The objects of a kind are judged in one version: the one that the installation registers (chart value `guard.resources`), else the one that the platform's or the oldest guard names. A guard that names another version guards them in that one, and its condition `Ready` says so with the reason `OtherVersion`. A custom kind is looked up when the guard is put in force; the conditions say so when the cluster does not have it. Never guarded are Secrets, Plumbline's own kinds, and what the cluster writes for its own bookkeeping (Event, Lease, LeaseCandidate, Endpoints, EndpointSlice, CSIStorageCapacity).

## Paths

`ignore` and `expectedWriters[].paths` name fields by JSON Pointers (`/spec/replicas`), with two additions: a segment `*` stands for any one key or element, and `[name=app]` for the list element with that key (`[port=80,protocol=TCP]` for two keys, up to four; `[=value]` for an element of a set). Within a segment `~0` stands for `~`, `~1` for `/`, `~2` for `*`, `~3` for `[`, `~4` for `]`, `~5` for `,` and `~6` for `=`. A path covers everything below it. Empty segments are refused, as are paths of more than 512 characters or 64 segments.

{{ range $groupVersions }}
{{ template "gvDetails" . }}
{{ end }}
{{- end -}}
