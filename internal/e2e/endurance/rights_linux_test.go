package endurance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// right is what RBAC may allow: an empty namespace is the whole cluster.
type right struct{ account, verb, group, resource, namespace string }

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s %s %s", r.account, r.verb, r.group, r.resource, r.namespace))
}

// checkRights demands that the API server refused nothing that the programs asked
// for, and that they asked for all that their manifests allow.
func (s *scene) checkRights() {
	s.Helper()
	f, err := os.Open(s.plane.AuditLog())
	require.NoError(s, err)
	defer f.Close()
	used := map[right]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		require.NoError(s, json.Unmarshal(lines.Bytes(), &e))
		account, ours := strings.CutPrefix(e.User.Username, "system:serviceaccount:"+own+":")
		if !ours || e.ObjectRef == nil {
			continue
		}
		if e.ResponseStatus != nil && !s.wasAway(e.RequestReceivedTimestamp.Time) {
			assert.NotContains(s, []int32{http.StatusUnauthorized, http.StatusForbidden}, e.ResponseStatus.Code, "%s", lines.Text())
		}
		resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		used[right{account, e.Verb, e.ObjectRef.APIGroup, resource, e.ObjectRef.Namespace}] = true
	}
	require.NoError(s, lines.Err())
	granted := s.granted()
	require.NotEmpty(s, granted)
	for _, r := range granted {
		watching := r
		if r.verb == "list" {
			// Informers list where the API server does not stream lists to those who
			// watch (KEP-3157, since 1.34 by default).
			watching.verb = "watch"
		}
		assert.True(s, slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(u right) bool {
			if r.namespace == "" {
				u.namespace = ""
			}
			return u == r || u == watching
		}), "a right that nobody uses: %s", r)
	}
	s.Logf("%d rights are granted", len(granted))
}

// wasAway reports whether the API server had just been started: it refuses everybody
// until it has read the roles.
func (s *scene) wasAway(at time.Time) bool {
	return slices.ContainsFunc(s.away, func(a span) bool { return a.has(at) })
}

// granted returns each single right of the service accounts.
func (s *scene) granted() (list []right) {
	s.Helper()
	ctx, all := s.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/part-of=strictarp"}
	rbac := s.admin.RbacV1()
	clusterRoles, err := rbac.ClusterRoles().List(ctx, all)
	require.NoError(s, err)
	roles, err := rbac.Roles("").List(ctx, all)
	require.NoError(s, err)
	for _, role := range clusterRoles.Items {
		for _, rule := range role.Rules {
			list = append(list, rights(role.Name, "", rule.Verbs, rule.APIGroups, rule.Resources)...)
		}
	}
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			list = append(list, rights(role.Name, role.Namespace, rule.Verbs, rule.APIGroups, rule.Resources)...)
		}
	}
	return list
}

// rights returns what a rule grants to the account that its role is named after.
func rights(role, namespace string, verbs, groups, resources []string) (list []right) {
	account := "strictarp-controller"
	if strings.HasPrefix(role, "strictarp-agent") {
		account = "strictarp-agent"
	}
	for _, verb := range verbs {
		for _, group := range groups {
			for _, resource := range resources {
				list = append(list, right{account, verb, group, resource, namespace})
			}
		}
	}
	return list
}
