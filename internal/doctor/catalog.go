// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"regexp"
	"strings"
)

// Page describes every check, one section each.
const Page = "docs/reference/doctor.md"

// repository serves the pages of each version.
const repository = "https://github.com/plumbline-dev/plumbline/blob/"

// releaseVersion is that of a release, which has a tag. A pseudo-version of Go has no tag.
var releaseVersion = regexp.MustCompile(`^v?([0-9]+[.][0-9]+[.][0-9]+(?:-(?:alpha|beta|rc)[.0-9]*)?)$`)

// Check is one question that is asked of an installation.
type Check struct {
	// ID is stable: scripts and the documentation name checks by it.
	ID string
	// Worst is the worst severity that the check can find. A caller who fails
	// on it cannot pass while the check is Unknown.
	Worst Severity
	// Good is what is said when there is nothing to say.
	Good string
	run  func(*Snapshot) []Finding
}

// Docs returns the URL of the check's section, on the page of the plugin's version. A plugin that no release
// built has the newest page.
func (c Check) Docs(version string) string {
	tag := "main"
	if release := releaseVersion.FindStringSubmatch(version); release != nil {
		tag = "v" + release[1]
	}
	return repository + tag + "/" + Page + "#" + strings.ReplaceAll(c.ID, ".", "")
}

// Checks are all checks, in the order in which they are shown.
func Checks() []Check {
	checks := []Check{
		{"install.found", Critical, "Plumbline is installed", checkInstalled},
		{"install.kinds", Critical, "all kinds are served", checkKinds},
		{"install.workloads", Critical, "all replicas are ready", checkWorkloads},
		{"install.versions", Warning, "all parts are of one version", checkVersions},
		{"install.apiserver", Critical, "the API server meets Plumbline's needs", checkAPIServer},
		{"webhook.registration", Critical, "both webhooks are registered as the chart does it", checkRegistration},
		{"webhook.rules", Critical, "webhooks and policies see the same kinds", checkRules},
		{"webhook.bundle", Critical, "the API server trusts the certificate that is served", checkBundle},
		{"webhook.certificate", Critical, "the certificates of all replicas are fresh", checkCertificate},
		{"webhook.reachable", Critical, "a dry-run write came back with the hash of the webhook", checkReachable},
		{"policy.writer", Critical, "a dry-run write came back with the name of its writer", checkWriterPolicy},
		{"policy.stamp-status", Critical, "stamps cannot be changed through the status subresource", checkStampStatusPolicy},
		{"policy.requested-by", Critical, "no user can accept in another user's name", checkRequestedByPolicy},
		{"policy.baseline-writers", Critical, "only the assessor writes the authorized content", checkBaselineWritersPolicy},
		{"policy.deny", Critical, "guards in mode Deny are enforced", checkDenyPolicy},
		{"policy.policy-writers", Critical, "a remediation policy acts in the name of its last writer", checkForged(expectPolicyWriters())},
		{"policy.plan-writers", Critical, "a remediation plan is the assessor's, or in the name of its writer", checkForged(expectPlanWriters())},
		{"policy.request-writers", Critical, "a person asks for a remediation in no name but the own", checkForged(expectRequestWriters())},
		{"policy.assessment-writers", Critical, "only the assessor says whether a write helped", checkForged(expectAssessmentWriters())},
		{"policy.ledger-writers", Critical, "only the executor writes grants", checkForged(expectLedgerWriters())},
		{"policy.executor-marks", Critical, "only the executor writes its marks", checkForged(expectExecutorMarks())},
		{"policy.executor-creations", Critical, "the executor makes an object in time or never", withExecutor("whether the creations of the executor are held to their time", checkExecutorCreations)},
		{"policy.executor-standbys", Critical, "the executor moves requests to its standbys alone", withExecutor("whether the executor is kept to its standbys", checkExecutorStandbys)},
		{"policy.release-writers", Critical, "a user controls a release in no name but the own", checkReleasePolicy(expectReleaseWriters())},
		{"policy.release-work-writers", Critical, "only the discovery server asks for a ReleaseWork", checkReleasePolicy(expectReleaseWorkWriters())},
		{"policy.release-supersede", Critical, "a run with supersede: Reject keeps its pod templates", checkReleasePolicy(expectReleaseSupersede())},
		{"cluster.timeouts", Critical, "hanging webhooks cannot use up the time of a request", checkTimeouts},
		{"cluster.scopes", Critical, "no webhook can block the start of the cluster", checkScopes},
		{"guards.coverage", Warning, "every kind that a guard names is registered, with its subresources", checkCoverage},
		{"guards.conditions", Warning, "all guards are active", checkGuardConditions},
		{"assessor.leader", Critical, "an assessor leads", checkLeader},
		{"assessor.staleness", Warning, "no check is overdue", checkStaleness},
		{"details.redis", Warning, "Redis takes the details of writes", checkRedis},
		{"executor.workload", Critical, "all replicas of the executor are ready", checkExecutorWorkload},
		{"executor.leader", Critical, "an executor leads", withExecutor("whether an executor leads", checkExecutorLeader)},
		{"executor.rights", Critical, "the executor has the permissions that it needs, and no others", withExecutor("the permissions of the executor", checkExecutorRights)},
		{"executor.namespaces", Warning, "the executor may write where Active policies want it to", withExecutor("whether the executor may write where policies want it to", checkExecutorNamespaces)},
		{"executor.evidence", Warning, "records are kept, and can be verified", withExecutor("how records are kept", checkEvidence)},
		{"remediation.ledgers", Warning, "no ledger holds remediation back", withExecutor("whether a ledger holds remediation back", checkLedgers)},
		{"remediation.plans", Warning, "no plan has waited for long", withExecutor("whether plans wait", checkPlans)},
		{"effectiveness.sources", Warning, "Alertmanager and Prometheus answer assessments", checkSources},
		{"mesh.services", Warning, "proxies have routes for all managed Services", withMesh("whether proxies have routes for all managed Services", checkMeshServices)},
		{"mesh.authority", Warning, "proxies have the authority of the discovery server", withMesh("whether proxies have the authority of the discovery server", checkMeshAuthority)},
		{"mesh.pod-security", Warning, "namespaces admit pods with proxies", withMesh("whether namespaces admit pods with proxies", checkMeshPodSecurity)},
		{"mesh.istio", Warning, "no pod has proxies of Istio and of Plumbline", withMesh("whether Istio has proxies in the same pods", checkMeshIstio)},
		{"mesh.proxies", Warning, "all proxies are connected", withMesh("whether all proxies are connected", checkMeshProxies)},
		{"mesh.upstreams", Warning, "proxies get all Services that their pods ask for", withMesh("whether proxies get all Services that their pods ask for", checkMeshUpstreams)},
		{"mesh.orphans", Warning, "no proxy runs without a discovery server", checkMeshOrphans},
		{"delivery.releases", Warning, "rollouts go on", withMesh("whether rollouts go on", checkDelivery)},
		{"delivery.works", Warning, "the executor can write the objects of rollouts", withMesh("whether the executor can write the objects of rollouts", checkWorks)},
		{"delivery.finalizers", Warning, "no release waits for a discovery server that is gone", checkFinalizers},
		{"delivery.strategies", Info, "releases use the strategies of people", withMesh("which strategies releases use", checkStrategies)},
		{"delivery.prometheus", Warning, "no run waits for Prometheus", withMesh("whether Prometheus answers the queries of rollouts", checkPrometheus)},
		{"routers.ready", Warning, "all TrafficRouters are ready", checkRoutersReady},
		{"routers.enabled", Warning, "the discovery server looks at all TrafficRouters", checkRoutersEnabled},
		{"routers.releases", Warning, "releases name TrafficRouters that are there", checkRouterNames},
		{"routers.gitops", Warning, "no GitOps tool undoes the weights of routes", checkRouteOwners},
		{"api.endpoints", Warning, "callers find a replica of the REST API", withAPI("whether callers find a replica of the REST API", checkAPIEndpoints)},
		{"api.authority", Warning, "callers can verify the certificate of the REST API", withAPI("whether callers can verify the certificate of the REST API", checkAPIAuthority)},
		{"api.hosts", Warning, "the certificate of the REST API names all hosts", withAPI("whether the certificate of the REST API names all hosts", checkAPIHosts)},
		{"api.audience", Critical, "tokens for the REST API alone read, and cannot write", withAPI("how the API server takes tokens for the REST API alone", checkAPIAudience)},
		{"api.issuer", Warning, "users of browsers can log in at the issuer", withAPI("whether users of browsers can log in at the issuer", checkAPIIssuer)},
		{"api.clock", Warning, "the clocks of the REST API are right", withAPI("whether the clocks of the REST API are right", checkAPIClock)},
	}
	for _, p := range powers() {
		checks = append(checks, Check{p.id, p.worst, p.good, p.check})
	}
	return append(checks, Check{"gitops.ignore", Warning, "no GitOps tool was found", checkGitOps})
}
