package strictarp_test
import "testing"
func TestZZ(t *testing.T){ d:=newDifferential(t,func() error{return nil}); for i:=2440;i<2500;i++ { d.compare(t,"again",configurations().Example(i)) } }
