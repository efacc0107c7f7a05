package kubeproxy

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	fieldManager = "strictarp"
	// restartedAt is what kubectl rollout restart sets in the pod template.
	restartedAt = "kubectl.kubernetes.io/restartedAt"

	backupSuffix   = "-strictarp-backup"
	backupObject   = "object.json" // key of the copy's data
	recordPrefix   = "strictarp.github.io/"
	recordPhase    = recordPrefix + "phase"
	recordUndo     = recordPrefix + "undo"
	recordWanted   = recordPrefix + "strict-arp"
	recordKey      = recordPrefix + "key"
	recordWorkload = recordPrefix + "workload"
	recordRestart  = recordPrefix + "restarted-at"

	// maxObject bounds the copied object, in bytes of JSON: as a string in another
	// object it may double, and the API server takes 1 MiB (validation of
	// ConfigMaps, MaxSecretSize).
	maxObject = 480 << 10
)

// BackupName returns the name of the ConfigMap in which a copy of the ConfigMap
// name is kept while it is changed and after. It is in the same namespace, and
// is overwritten by the next change once a change is done.
func BackupName(name string) string { return name + backupSuffix }

// UnfinishedError says that an earlier change was not brought to its end: plan
// that one again to finish it, or plan its undoing.
type UnfinishedError struct {
	Object string // the copy, such as "configmap/kube-proxy-strictarp-backup"
	Record Record
}

func (e *UnfinishedError) Error() string {
	what := "to strictARP " + string(e.Record.StrictARP)
	if e.Record.Undo {
		what = "back from strictARP " + string(e.Record.StrictARP)
	}
	return fmt.Sprintf("kubeproxy: a change %s is unfinished (%s, %s): finish it or undo it first", what, e.Object, e.Record.Phase)
}

// copyOf returns what is kept of a ConfigMap: all but what the API server
// adds, so that kubectl create and replace take it.
func copyOf(cm *corev1.ConfigMap) *corev1.ConfigMap {
	c := cm.DeepCopy()
	c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	c.ObjectMeta = metav1.ObjectMeta{
		Name: cm.Name, Namespace: cm.Namespace, Labels: c.Labels, Annotations: c.Annotations,
		OwnerReferences: c.OwnerReferences, Finalizers: c.Finalizers,
	}
	return c
}

// WriteBackup writes the ConfigMap as it was before the change, as YAML that
// kubectl replace takes: as it was when the plan was made, or, if that goes on
// with an earlier run, when that began.
func (p *Plan) WriteBackup(w io.Writer) error {
	cm := copyOf(p.configMap)
	if begun := p.Resumed != nil && !p.begins(); begun && !p.Undo {
		var err error
		if cm, err = readBackup(p.backup); err != nil {
			return err
		}
	}
	text, err := yaml.Marshal(cm)
	if err == nil {
		_, err = w.Write(text)
	}
	if err != nil {
		return fmt.Errorf("kubeproxy: write the copy of %s: %w", p.object(), err)
	}
	return nil
}

// begins returns whether the plan writes a copy, rather than going on with one.
func (p *Plan) begins() bool { return len(p.Steps) > 0 && p.Steps[0].Kind == StepBackup }

// setBackup makes backup hold a copy of cm.
func setBackup(backup, cm *corev1.ConfigMap) error {
	text, err := json.Marshal(copyOf(cm))
	if err != nil {
		return fmt.Errorf("kubeproxy: copy configmap/%s: %w", cm.Name, err)
	}
	if len(text) > maxObject {
		return fmt.Errorf("kubeproxy: copy configmap/%s: it has %d bytes, more than %d, and the copy would not fit into a ConfigMap: move what is not kube-proxy's out of it", cm.Name, len(text), maxObject)
	}
	backup.Name, backup.Namespace = BackupName(cm.Name), cm.Namespace
	backup.Data = map[string]string{backupObject: string(text)}
	return nil
}

// readBackup returns the object that backup holds.
func readBackup(backup *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	var cm corev1.ConfigMap
	if err := json.Unmarshal([]byte(backup.Data[backupObject]), &cm); err != nil {
		return nil, fmt.Errorf("kubeproxy: read configmap/%s: its %s is no ConfigMap: %w: restore it from the file that was kept", backup.Name, backupObject, err)
	}
	return &cm, nil
}

func (r Record) write(backup *corev1.ConfigMap) {
	if backup.Annotations == nil {
		backup.Annotations = map[string]string{}
	}
	if backup.Labels == nil {
		backup.Labels = map[string]string{}
	}
	backup.Labels["app.kubernetes.io/managed-by"] = fieldManager
	undo := ""
	if r.Undo {
		undo = "true"
	}
	for key, value := range map[string]string{
		recordPhase: string(r.Phase), recordUndo: undo, recordWanted: string(r.StrictARP),
		recordKey: r.Key, recordWorkload: r.Workload, recordRestart: r.RestartedAt,
	} {
		if value == "" {
			delete(backup.Annotations, key)
			continue
		}
		backup.Annotations[key] = value
	}
}

// readRecord returns the record in a copy. What is not one, such as after an
// edit by hand, is an error: what is left to do cannot be known then.
func readRecord(backup *corev1.ConfigMap) (Record, error) {
	a := backup.Annotations
	r := Record{
		Phase: Phase(a[recordPhase]), Undo: a[recordUndo] == "true", StrictARP: StrictARP(a[recordWanted]),
		Key: a[recordKey], Workload: a[recordWorkload], RestartedAt: a[recordRestart],
	}
	switch r.Phase {
	case PhasePrepared, PhaseRestarting, PhaseDone:
		return r, nil
	}
	return r, fmt.Errorf("kubeproxy: read configmap/%s: its annotation %s is %q, which no change writes: see what it holds, then delete it", backup.Name, recordPhase, r.Phase)
}
