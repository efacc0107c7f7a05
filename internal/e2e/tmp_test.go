package main
import ("testing";"fmt";"os";"github.com/strictarp/strictarp/internal/e2e/programs")
func TestTmp(t *testing.T){
 l,err:=programs.Tools(t.Context()); fmt.Println(len(l),err); for _,f:=range l { if len(f.Name)<40 {fmt.Println(f.Name,f.From)} }
 k,i,err:=prepare(t.Context(),t.TempDir(),map[string]string{},nil,0); fmt.Println(k,i,err)
 if err==nil { s,_:=os.Stat(i); fmt.Println(s.Size()) }
}
