{{- define "gvList" -}}
{{- $groupVersions := . -}}
<!-- Generated from pkg/apis by crd-ref-docs; change the types or hack/kindsdoc/templates, then run make generate. -->
# Kinds

The objects that Plumbline keeps in the Kubernetes API. A person writes guards, Environments, GuardDefaults, RemediationPolicies, RemediationRequests, ABReleases, RolloutStrategies and TrafficRouters, and sets `accept` in a Baseline; Plumbline writes the other kinds, and each status. Every field is bounded and every enum closed: a wrong object is refused by the API server, with the path of the field. All kinds are in the category `plumbline` (`kubectl get plumbline`).

| Kind | Short | Scope | Written by | Answers |
|---|---|---|---|---|
| [Environment](#environment) |  | cluster | people | how much do these namespaces matter? |
| [GuardDefaults](#guarddefaults) |  | cluster | people | how often is checked, how much at once? |
| [ClusterSpecGuard](#clusterspecguard) |  | cluster | the platform team | which objects of which namespaces are guarded, and which writers may change them? |
| [SpecGuard](#specguard) |  | namespace | the team that owns the namespace | which objects are guarded here, and which writers may change them? |
| [SpecGuardException](#specguardexception) |  | namespace | the team that owns the namespace | which fields may writers change by hand, and until when? |
| [Baseline](#baseline) |  | namespace | Plumbline; people set `spec.accept` | which content of this object is authorized, and which is observed? |
| [BaselineRevision](#baselinerevision) |  | namespace | Plumbline | what did the authorized object look like? |
| [RemediationRequest](#remediationrequest) | `rreq` | namespace | people, in their own name | remediate these drifted objects now? |
| [RemediationPolicy](#remediationpolicy) | `rpol` | cluster | the platform team | which drift of an Environment is remediated, when, and how much at once? |
| [RemediationPlan](#remediationplan) | `rplan` | namespace | Plumbline, and people in their own name; people set `spec.control` | which steps remediate these objects, and how did each end? |
| [EffectivenessAssessment](#effectivenessassessment) | `ea` | namespace | Plumbline | did a write of a plan help, and is it still in effect? |
| [RemediationLedger](#remediationledger) | `rled` | Plumbline's namespace | Plumbline; people set `spec.halt` and `spec.override` | which steps were granted lately, and is remediation halted? |
| [ABRelease](#abrelease) | `abr` | namespace | the team that owns the namespace | how are the requests of this Service divided, and which proxies have acknowledged that? |
| [RolloutStrategy](#rolloutstrategy) | `rstrategy` | cluster | the platform team | by which stages does a new revision get requests? |
| [TrafficRouter](#trafficrouter) | `trouter` | cluster | the platform team | what carries splits out beside the mesh, and for whom? |
| [ReleaseWork](#releasework) | `rwork` | namespace | Plumbline | which write to a workload does a release need, and how did it end? |

Ready, Reconciling and Stalled follow kstatus. Ready is True when the object is active (of a Baseline: in sync). Reconciling is True while the observation lags behind the spec. Stalled is True when only a change of the spec can help. `status.observedGeneration` below `metadata.generation` means that the status speaks of an older spec. Announced of a RemediationPlan is False until people are [told of the end](../guides/notifications.md#promises). [Each other condition](api-policy.md#conditions) is there from the first status on, and False where it does not hold.

## The effects of a guard

| `mode` | `managementPolicy` | suspended | untrusted change is | the writer is | the object may be repaired |
|---|---|---|---|---|---|
| Audit | Managed | no | drift | not told | if a RemediationPolicy says so |
| Audit | Unmanaged | no | drift | not told | never |
| Warn | Managed | no | drift | warned | if a RemediationPolicy says so |
| Warn | Unmanaged | no | drift | warned | never |
| Deny | Managed | no | refused; drift where it was not | told by the refusal | if a RemediationPolicy says so |
| Deny | Unmanaged | no | refused; drift where it was not | told by the refusal | never |
| Audit, Warn or Deny | Managed or Unmanaged | until `suspend.until` | not looked at by this guard | not told | not for this guard |

Where several guards select an object the stricter result holds. A writer is trusted only if all of them trust it, and a path is ignored only if all of them ignore it. One that warns makes it a warning, one that denies rejects it, and one Unmanaged forbids remediation. There a ClusterSpecGuard decides alone: `managementPolicy`, `resyncPeriod` and `suspend` of a SpecGuard under it do not hold back remediation. So a tenant does not keep the platform from its own. A ClusterSpecGuard may list in `acceptBy` the only users that may accept the observed state. Where several do, all of them must name the requester, the suspended ones included. With `acceptByAuthor: Forbidden`, no writer accepts a change of their own. A suspended guard is out of that count until its time is over, with one exception: a writer that it does not trust stays untrusted. So no content is authorized meanwhile that the guard would not have authorized. An object stays selected when an untrusted writer takes a label off. A guard with a selector that no longer asks for the labels of the object releases it. So does a trusted writer that moves the label together with content. At most 64 SpecGuards of one namespace are active; of more, the oldest are. Deny is for ClusterSpecGuards only: [Deny](deny.md).

A guard names kinds of the built-in API groups from closed lists, so that the API server rejects a misspelt or cluster-scoped kind. The objects of a kind are judged in one version. It is the one that the installation registers (chart value `guard.resources`), else the one that the platform's or the oldest guard names. A guard that names another version guards them in that one, and its condition `Ready` says so with the reason `OtherVersion`. A custom kind is looked up when the guard becomes active; the conditions report a kind that the cluster does not have. Never guarded are Secrets, Plumbline's own kinds, and the bookkeeping of the cluster (Event, Lease, LeaseCandidate, Endpoints, EndpointSlice, CSIStorageCapacity).

## Paths

`ignore` and `expectedWriters[].paths` name fields by JSON Pointers (`/spec/replicas`), with two additions. A segment `*` stands for any one key or element, and `[name=app]` for the list element with that key. `[port=80,protocol=TCP]` has two keys, of at most four, and `[=value]` is an element of a set. Within a segment `~0` stands for `~`, `~1` for `/`, `~2` for `*`, `~3` for `[`, `~4` for `]`, `~5` for `,` and `~6` for `=`. A path covers everything below it. Empty segments are refused, as are paths of more than 512 characters or 64 segments.

{{ range $groupVersions }}
{{ template "gvDetails" . }}
{{ end }}
{{- end -}}
