/**
 * Creates a queue: operations with one key run one after another, in the order of the calls. An operation that fails
 * does not stop the next one.
 */
export function queue() {
  const last = new Map<string, Promise<unknown>>(); // the newest operation of each key that has not ended
  return <T>(key: string, run: () => T | Promise<T>): Promise<T> => {
    const result = (last.get(key) ?? Promise.resolve()).then(run);
    const ended = result
      .catch(() => {})
      .then(() => {
        if (last.get(key) === ended) last.delete(key);
      });
    last.set(key, ended);
    return result;
  };
}
